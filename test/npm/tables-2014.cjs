// Drives antipode dev with azure-storage 0.4.5 of 2015, which speaks JSON of version 2014-02-14, where
// Atom was another choice. Exits 0 and says "all checks passed", or fails with the first broken
// promise.
const assert = require("node:assert/strict");
const dns = require("node:dns");

// Not every resolver knows that *.localhost is this machine.
const lookup = dns.lookup;
dns.lookup = (host, options, done) => lookup(host.endsWith(".localhost") ? "127.0.0.1" : host, options, done);

const storage = require("azure-storage-0.4.5");

const { PRIMARY, SECONDARY, ACCOUNT, KEY } = process.env;
const TABLE = "EarlyTable";
const ARRIVE_WAIT_MS = 30_000;
const service = storage.createTableService(ACCOUNT, KEY, { primaryHost: PRIMARY, secondaryHost: SECONDARY });
const gen = storage.TableUtilities.entityGenerator;

// call makes a promise of a call of the client.
function call(name, ...args) {
  return new Promise((resolve, reject) =>
    service[name](...args, (err, result) => (err ? reject(err) : resolve(result))));
}

// fails requires that a call is refused with this status and code.
async function fails(promise, status, code) {
  await assert.rejects(promise, (err) => {
    assert.equal(`${err.statusCode} ${err.code}`, `${status} ${code}`, `${err}`);
    return true;
  });
}

const entity = (rk, more) => ({ PartitionKey: gen.String("p"), RowKey: gen.String(rk), ...more });

function batchOf(...operations) {
  const batch = new storage.TableBatch();
  for (const [name, ...args] of operations) batch[name](...args);
  return batch;
}

async function entities() {
  assert.equal(await call("createTableIfNotExists", TABLE), true);
  assert.equal(await call("createTableIfNotExists", TABLE), false);
  await fails(call("createTable", TABLE), 409, "TableAlreadyExists");
  assert.equal(await call("doesTableExist", TABLE), true);
  assert.equal(await call("doesTableExist", "EarlyNone"), false);
  assert.deepEqual((await call("listTablesSegmentedWithPrefix", "Early", null)).entries, [TABLE]);
  await fails(call("insertEntity", "EarlyNone", entity("one")), 404, "TableNotFound");
  await call("insertEntity", TABLE, entity("one", { s: gen.String("søn"), d: gen.Double(1.5), big: gen.Int64("9007199254740993") }));
  await fails(call("insertEntity", TABLE, entity("one")), 409, "EntityAlreadyExists");
  const got = await call("retrieveEntity", TABLE, "p", "one");
  assert.deepEqual([got.s._, got.d._, got.big._], ["søn", 1.5, "9007199254740993"]);
  await call("mergeEntity", TABLE, entity("one", { more: gen.Boolean(true) }));
  got.s._ = "stale";
  await fails(call("updateEntity", TABLE, got), 412, "UpdateConditionNotSatisfied");
  assert.equal((await call("retrieveEntity", TABLE, "p", "one")).s._, "søn");
  await call("deleteEntity", TABLE, entity("one"));
  await fails(call("retrieveEntity", TABLE, "p", "one"), 404, "ResourceNotFound");
}

async function batches() {
  const fill = [...Array(100).keys()].map((i) =>
    ["insertEntity", entity(String(i).padStart(3, "0"), { n: gen.Int32(i), d: gen.Double(i) }), { echoContent: i === 0 }]);
  assert.equal((await call("executeBatch", TABLE, batchOf(...fill))).length, 100);
  await call("executeBatch", TABLE, batchOf(
    ["mergeEntity", entity("000", { n: gen.Int32(-1) })],
    ["updateEntity", entity("001", { n: gen.Int32(-2) })],
    ["insertOrMergeEntity", entity("002", { n: gen.Int32(-3) })],
    ["insertOrReplaceEntity", entity("new", { n: gen.Int32(-4) })],
    ["deleteEntity", entity("003")],
  ));
  await fails(call("executeBatch", TABLE, batchOf(["insertEntity", entity("lost")], ["insertEntity", entity("000")])), 409, "EntityAlreadyExists");
  await fails(call("retrieveEntity", TABLE, "p", "lost"), 404, "ResourceNotFound");

  const query = new storage.TableQuery().where("PartitionKey eq ? and n lt ?", "p", 5).top(3);
  const rows = [];
  for (let token = null; ;) {
    const page = await call("queryEntities", TABLE, query, token);
    assert.ok(page.entries.length <= 3);
    rows.push(...page.entries.map((e) => `${e.RowKey._} ${e.n._}`));
    token = page.continuationToken;
    if (!token) break;
  }
  assert.deepEqual(rows, ["000 -1", "001 -2", "002 -3", "004 4", "new -4"]);
}

// secondary reads at the other location. The client sends writes there if it is told to.
async function secondary() {
  const there = { locationMode: storage.StorageUtilities.LocationMode.SECONDARY_ONLY };
  const query = new storage.TableQuery().where("RowKey eq ?", "new");
  for (const end = Date.now() + ARRIVE_WAIT_MS; ;) {
    const page = await call("queryEntities", TABLE, query, null, there).catch((err) => ({ entries: [], err }));
    if (page.entries.length === 1) break;
    assert.ok(Date.now() < end, `the entity did not arrive: ${page.err}`);
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.equal((await call("getServiceStats", there)).GeoReplication.Status, "live");
}

(async () => {
  await entities();
  await batches();
  await secondary();
  await call("deleteTable", TABLE);
  console.log("all checks passed");
})().catch((err) => {
  console.error(err);
  process.exit(1);
});
