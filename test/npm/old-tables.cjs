// Drives antipode dev with the last release of azure-storage, which speaks as clients
// of before 2020 do: SharedKey, MERGE, batches of bare line feeds without a last one,
// Doubles as annotated strings. Exits 0 and says "all checks passed", or fails with the
// first broken promise.
const assert = require("node:assert/strict");
const storage = require("azure-storage");

const { PRIMARY, SECONDARY, ACCOUNT, KEY } = process.env;
const TABLE = "OldTable";
const ARRIVE_WAIT_MS = 30_000;
const primary = storage.createTableService(ACCOUNT, KEY, { primaryHost: PRIMARY, secondaryHost: SECONDARY });
let service = primary;
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
  assert.equal((await call("createTableIfNotExists", TABLE)).created, true);
  assert.equal((await call("createTableIfNotExists", TABLE)).created, false);
  await fails(call("createTable", TABLE), 409, "TableAlreadyExists");
  assert.equal((await call("doesTableExist", TABLE)).exists, true);
  assert.equal((await call("doesTableExist", "OldNone")).exists, false);
  assert.deepEqual((await call("listTablesSegmentedWithPrefix", "Old", null)).entries, [TABLE]);
  await fails(call("insertEntity", "OldNone", entity("one")), 404, "TableNotFound");
  await call("insertEntity", TABLE, entity("one", { s: gen.String("søn"), d: gen.Double(1.5), big: gen.Int64("9007199254740993") }));
  await fails(call("insertEntity", TABLE, entity("one")), 409, "EntityAlreadyExists");
  const got = await call("retrieveEntity", TABLE, "p", "one");
  assert.equal(got.s._, "søn");
  assert.equal(got.d._, 1.5);
  assert.equal(got.big._, "9007199254740993");
  await call("mergeEntity", TABLE, entity("one", { more: gen.Boolean(true) }));
  got.s._ = "stale";
  await fails(call("replaceEntity", TABLE, got), 412, "UpdateConditionNotSatisfied");
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
    ["replaceEntity", entity("001", { n: gen.Int32(-2) })],
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
    if (!page.continuationToken) break;
    token = JSON.parse(JSON.stringify(page.continuationToken)); // as in a client that goes on later
  }
  assert.deepEqual(rows, ["000 -1", "001 -2", "002 -3", "004 4", "new -4"]);
  const [found] = await call("executeBatch", TABLE, batchOf(["retrieveEntity", "p", "000", { echoContent: true }]));
  assert.equal(found.entity.n._, -1);
}

// secondary reads at the other location. The client sends queries there by itself; point
// reads and batches it sends to what it takes for a primary.
async function secondary() {
  const there = { locationMode: storage.StorageUtilities.LocationMode.SECONDARY_ONLY };
  const query = new storage.TableQuery().where("RowKey eq ?", "new");
  const here = await call("retrieveEntity", TABLE, "p", "new");
  for (const end = Date.now() + ARRIVE_WAIT_MS; ;) {
    const page = await call("queryEntities", TABLE, query, null, there).catch((err) => ({ entries: [], err }));
    if (page.entries.length === 1) break;
    assert.ok(Date.now() < end, `the entity did not arrive: ${page.err}`);
    await new Promise((done) => setTimeout(done, 50));
  }
  service = storage.createTableService(ACCOUNT, KEY, SECONDARY);
  const [found] = await call("executeBatch", TABLE, batchOf(["retrieveEntity", "p", "new", { echoContent: true }]));
  assert.equal(found.entity[".metadata"].etag, here[".metadata"].etag);
  await fails(call("executeBatch", TABLE, batchOf(["insertEntity", entity("x")])), 403, "InsufficientAccountPermissions");
  for (const [name, ...args] of [
    ["insertEntity", TABLE, entity("x")], ["insertOrReplaceEntity", TABLE, entity("new")], ["mergeEntity", TABLE, entity("new")],
    ["deleteEntity", TABLE, entity("new")], ["createTable", "OldRefused"], ["deleteTable", TABLE],
  ]) await fails(call(name, ...args), 403, "InsufficientAccountPermissions");
  service = primary;
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
