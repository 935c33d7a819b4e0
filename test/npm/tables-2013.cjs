// Drives antipode dev with azure 0.6.11 of 2013, which speaks Atom as clients of version 2011-08-18
// do: element names by their prefixes, batches of bare line feeds with a blank after the comma of a
// key, empty strings as null. Exits 0 and says "all checks passed", or fails with the first broken
// promise.
const assert = require("node:assert/strict");
const dns = require("node:dns");
const http = require("node:http");
const url = require("node:url");

// Not every resolver knows that *.localhost is this machine.
const lookup = dns.lookup;
dns.lookup = (host, options, done) => lookup(host.endsWith(".localhost") ? "127.0.0.1" : host, options, done);

// Node of 2013 used no connection twice, and left a query alone that the client has put behind the path.
http.globalAgent = new http.Agent({ keepAlive: false });
const format = url.format;
url.format = (parts) => {
  const [pathname, ...search] = (parts.pathname ?? "").split("?");
  return format(search.length ? { ...parts, pathname, search: search.join("?") } : parts);
};

const azure = require("azure");

const { PRIMARY, SECONDARY, ACCOUNT, KEY } = process.env;
const TABLE = "AtomTable";
const ARRIVE_WAIT_MS = 30_000;
const primary = azure.createTableService(ACCOUNT, KEY, PRIMARY);

// call makes a promise of the first result of a call of the client.
function call(name, ...args) {
  return callOf(primary, name, ...args);
}

function callOf(service, name, ...args) {
  return new Promise((resolve, reject) => service[name](...args, (err, result, more) => (err ? reject(err) : resolve([result, more]))));
}

async function fails(promise, code) {
  await assert.rejects(promise, (err) => {
    assert.equal(err.code, code, `${err.code} ${err.message?._ ?? err}`);
    return true;
  });
}

const typed = (value, type) => ({ _: value, $: { type } });
const entity = (rk, more) => ({ PartitionKey: "p", RowKey: rk, ...more });

async function tables() {
  const [made] = await call("createTable", TABLE);
  assert.equal(made.TableName, TABLE);
  assert.equal((await call("createTableIfNotExists", TABLE))[0], false);
  await fails(call("createTable", TABLE), "TableAlreadyExists");
  assert.equal((await call("getTable", TABLE))[0].TableName, TABLE);
  assert.ok((await call("queryTables"))[0].some((t) => t.TableName === TABLE));
  await fails(call("getTable", "AtomNone"), "ResourceNotFound");
  await fails(call("insertEntity", "AtomNone", entity("one")), "TableNotFound");
}

async function entities() {
  const [added] = await call("insertEntity", TABLE, entity("one", {
    s: "søn <&\"'>", blanks: " a ", n: typed(7, "Edm.Int32"), d: typed(1.5, "Edm.Double"), yes: typed(true, "Edm.Boolean"), none: "",
  }));
  assert.ok(added.etag.startsWith("W/\"datetime'"), added.etag);
  assert.equal(added.link, `${TABLE}(PartitionKey='p',RowKey='one')`);
  await fails(call("insertEntity", TABLE, entity("one")), "EntityAlreadyExists");
  const [got] = await call("queryEntity", TABLE, "p", "one");
  assert.deepEqual([got.s, got.blanks, got.n, got.d, got.yes, got.etag], ["søn <&\"'>", " a ", 7, 1.5, true, added.etag]);
  assert.equal("none" in got, false, "the client writes an empty string as null");
  assert.ok(Math.abs(got.Timestamp - Date.now()) < 60_000, `${got.Timestamp}`);

  await call("mergeEntity", TABLE, entity("one", { more: "m" }));
  await fails(call("updateEntity", TABLE, { ...got, s: "stale" }, { checkEtag: true }), "UpdateConditionNotSatisfied");
  await fails(call("mergeEntity", TABLE, entity("none", {})), "ResourceNotFound");
  const [merged] = await call("queryEntity", TABLE, "p", "one");
  assert.deepEqual([merged.s, merged.more], ["søn <&\"'>", "m"]);
  await call("updateEntity", TABLE, { PartitionKey: "p", RowKey: "one", only: "this", etag: merged.etag }, { checkEtag: true });
  const [replaced] = await call("queryEntity", TABLE, "p", "one");
  assert.deepEqual([replaced.s, replaced.only], [undefined, "this"]);
  await call("insertOrReplaceEntity", TABLE, entity("two", { a: "1" }));
  await call("insertOrMergeEntity", TABLE, entity("two", { b: "2" }));
  const [two] = await call("queryEntity", TABLE, "p", "two");
  assert.deepEqual([two.a, two.b], ["1", "2"]);
  const [chosen] = await call("queryEntities", azure.TableQuery.select("b", "zz").from(TABLE).where("RowKey eq ?", "two"));
  assert.deepEqual([chosen[0].a, chosen[0].b, "zz" in chosen[0]], [undefined, "2", true]);
  await call("deleteEntity", TABLE, entity("two"));
  await fails(call("queryEntity", TABLE, "p", "two"), "ResourceNotFound");
  await fails(call("deleteEntity", TABLE, entity("two")), "ResourceNotFound");
}

// batch runs operations as one, and returns the answer of each.
async function batch(...operations) {
  primary.beginBatch();
  for (const [name, ...args] of operations) primary[name](TABLE, ...args, () => {});
  return (await call("commitBatch"))[0];
}

async function batches() {
  // The client counts characters where it says how many bytes the batch has: one of two bytes cuts
  // off the last of the final boundary.
  const fill = await batch(...[...Array(50).keys()].map((i) =>
    ["insertEntity", entity(String(i).padStart(3, "0"), { n: typed(i, "Edm.Int32"), s: i === 49 ? "søn" : "" })]));
  assert.deepEqual(fill.map((r) => r.response.statusCode), Array(50).fill(201));
  assert.equal(fill[49].response.body.entry.content[0]["m:properties"][0]["d:s"][0], "søn");
  const changed = await batch(
    ["mergeEntity", entity("000", { n: typed(-1, "Edm.Int32") })],
    ["updateEntity", entity("001", { n: typed(-2, "Edm.Int32") })],
    ["insertOrMergeEntity", entity("002", { n: typed(-3, "Edm.Int32") })],
    ["insertOrReplaceEntity", entity("new", { n: typed(-4, "Edm.Int32") })],
    ["deleteEntity", entity("003")],
  );
  assert.deepEqual(changed.map((r) => r.response.statusCode), Array(5).fill(204));
  const lost = await batch(["insertEntity", entity("lost")], ["insertEntity", entity("000")]);
  assert.deepEqual(lost.map((r) => [r.response.statusCode, r.error.code, r.error.message._]),
    [[409, "EntityAlreadyExists", "1:The specified entity already exists."]]);
  await fails(call("queryEntity", TABLE, "p", "lost"), "ResourceNotFound");

  const rows = [];
  let [page, next] = await call("queryEntities", azure.TableQuery.select().from(TABLE).where("PartitionKey eq ? and n lt 5", "p").top(3));
  for (;;) {
    assert.ok(page.length <= 3);
    rows.push(...page.map((e) => `${e.RowKey} ${e.n}`));
    if (!next.hasNextPage()) break;
    [page, next] = await callOf(next, "getNextPage");
  }
  assert.deepEqual(rows, ["000 -1", "001 -2", "002 -3", "004 4", "new -4"]);
  const [empty] = await call("queryEntities", azure.TableQuery.select().from(TABLE).where("PartitionKey eq ?", "none"));
  assert.deepEqual(empty, []);
}

// secondary reads at the other location, as an address that such a client is given.
async function secondary() {
  const second = azure.createTableService(ACCOUNT, KEY, SECONDARY);
  const [here] = await call("queryEntity", TABLE, "p", "new");
  let there, refused;
  for (const end = Date.now() + ARRIVE_WAIT_MS; there === undefined; ) {
    [there] = await callOf(second, "queryEntity", TABLE, "p", "new").catch((err) => [undefined, (refused = err)]);
    assert.ok(Date.now() < end, `the entity did not arrive: ${refused?.code}`);
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.equal(there.etag, here.etag);
  await fails(callOf(second, "insertEntity", TABLE, entity("x")), "InsufficientAccountPermissions");
  await fails(callOf(second, "deleteTable", TABLE), "InsufficientAccountPermissions");
}

// A wrong key is refused before the version is looked at, in Atom's form of an error.
async function signed() {
  const stranger = azure.createTableService(ACCOUNT, Buffer.from("another key").toString("base64"), PRIMARY);
  await fails(callOf(stranger, "queryTables"), "AuthenticationFailed");
}

(async () => {
  await tables();
  await entities();
  await batches();
  await secondary();
  await signed();
  await call("deleteTable", TABLE);
  await fails(call("queryEntities", azure.TableQuery.select().from(TABLE)), "TableNotFound");
  console.log("all checks passed");
})().catch((err) => {
  console.error(err);
  process.exit(1);
});
