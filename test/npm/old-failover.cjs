// Reads with the last release of azure-storage, in the mode PRIMARY_THEN_SECONDARY, while the account fails over: a blob
// and an entity, all the time, until standard input ends. Each line "go on" is answered once every reader has succeeded
// again; the line "alternate" ends those with the client's own filter. Exits 0 and says "all checks passed" if no read of
// any reader has failed.
const assert = require("node:assert/strict");
const readline = require("node:readline");
const { setTimeout: sleep } = require("node:timers/promises");
const storage = require("azure-storage");

const { BLOB, BLOB_NODE, BLOB_SECONDARY, TABLE, TABLE_NODE, TABLE_SECONDARY, ACCOUNT, KEY } = process.env;
const CONTAINER = "old-failover", NAME = "OldFailover", VALUE = "everywhere";
const { PRIMARY_THEN_SECONDARY, SECONDARY_ONLY } = storage.StorageUtilities.LocationMode;
const gen = storage.TableUtilities.entityGenerator;
const query = new storage.TableQuery().where("PartitionKey eq ? and RowKey eq ?", "p", "r");

// The client's own filters retry connections that fail, but no status; and once they have gone to the secondary they stay
// there, since the context of the retries keeps its target. This one does what protocol/service.md 13 says.
class Alternating extends storage.LinearRetryPolicyFilter {
  shouldRetry(statusCode, options) {
    const retryable = statusCode === 408 || statusCode >= 500 && statusCode !== 501 && statusCode !== 505;
    return Object.assign(super.shouldRetry(statusCode, options), { retryable, targetLocation: null });
  }
}

const call = (service, name, ...args) => new Promise((resolve, reject) =>
  service[name](...args, (err, result) => (err ? reject(err) : resolve(result))));

// client is a service as it is made, with a retry filter and the mode.
function client(create, primaryHost, secondaryHost, filter) {
  const service = create(ACCOUNT, KEY, { primaryHost, secondaryHost }).withFilter(filter);
  service.defaultLocationMode = PRIMARY_THEN_SECONDARY;
  service.defaultClientRequestTimeoutInMs = 20_000;
  return service;
}

const readers = [];

// reader reads until the end, and keeps its errors.
class Reader {
  constructor(what, read) {
    Object.assign(this, { what, read, done: 0, errors: [], ended: false });
    readers.push(this);
  }

  async run() {
    while (!this.ended) {
      try {
        await this.read();
        this.done++;
      } catch (err) {
        this.errors.push(err);
        await sleep(20);
      }
    }
  }
}

async function arrived(read) {
  for (const end = Date.now() + 30_000; ;) {
    try {
      return await read({ locationMode: SECONDARY_ONLY });
    } catch (err) {
      if (Date.now() > end) throw err;
      await sleep(50);
    }
  }
}

async function start() {
  for (const [which, Filter, blobHost, tableHost] of [
    ["own", storage.LinearRetryPolicyFilter, BLOB_NODE, TABLE_NODE], ["alternating", Alternating, BLOB, TABLE],
  ]) {
    const filter = new Filter(6, 500);
    const blobs = client(storage.createBlobService, blobHost, BLOB_SECONDARY, filter);
    const tables = client(storage.createTableService, tableHost, TABLE_SECONDARY, filter);
    await call(blobs, "createContainerIfNotExists", CONTAINER);
    await call(blobs, "createBlockBlobFromText", CONTAINER, "read", VALUE);
    await call(tables, "createTableIfNotExists", NAME);
    await call(tables, "insertOrReplaceEntity", NAME, { PartitionKey: gen.String("p"), RowKey: gen.String("r"), V: gen.String(VALUE) });
    const blob = async (options = {}) => assert.equal(await call(blobs, "getBlobToText", CONTAINER, "read", options), VALUE);
    const entity = async (options = {}) => {
      const page = await call(tables, "queryEntities", NAME, query, null, options);
      assert.deepEqual(page.entries.map((e) => e.V._), [VALUE]);
    };
    await arrived(blob);
    await arrived(entity);
    new Reader(`blob, ${which} filter`, blob);
    new Reader(`entity, ${which} filter`, entity);
  }
}

// goneOn waits until every reader has succeeded in a read that began after the call.
async function goneOn() {
  const wanted = readers.map((r) => r.done + 2);
  for (const end = Date.now() + 40_000; readers.some((r, i) => !r.ended && r.done < wanted[i]);) {
    assert.ok(Date.now() < end, readers.map((r, i) => `${r.what}: ${r.done} reads of ${wanted[i]}, ${r.errors.at(-1)}`).join("; "));
    await sleep(10);
  }
}

// end ends readers, with the reads that they have begun.
async function end(some) {
  for (const r of some) r.ended = true;
  await Promise.all(some.map((r) => r.running));
}

(async () => {
  await start();
  for (const r of readers) r.running = r.run();
  console.log("reading");
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line === "alternate") await end(readers.filter((r) => r.what.includes("own filter")));
    await goneOn();
    console.log("gone on");
  }
  await end(readers);
  for (const r of readers) {
    console.log(`${r.what}: ${r.done} reads, ${r.errors.length} errors`);
    for (const err of r.errors.slice(0, 3)) console.log(err);
  }
  assert.equal(readers.flatMap((r) => r.errors).length, 0);
  console.log("all checks passed");
})().catch((err) => {
  console.error(err);
  process.exit(1);
});
