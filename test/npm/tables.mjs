// Drives antipode dev with the official JavaScript table client: writes at the
// primary, reads the same values and tags at -secondary, and is refused there.
// Exits 0 and says "all checks passed", or fails with the first broken promise.
import assert from "node:assert/strict";
import dns from "node:dns";
import { setTimeout as sleep } from "node:timers/promises";

// Not every resolver knows that *.localhost is this machine.
const lookup = dns.lookup;
dns.lookup = (host, options, done) =>
  lookup(host.endsWith(".localhost") ? "127.0.0.1" : host, options, done);

const {
  AzureNamedKeyCredential, AzureSASCredential, TableClient, TableServiceClient, generateAccountSas, generateTableSas, odata,
} = await import("@azure/data-tables");

const { PRIMARY, SECONDARY, ACCOUNT, KEY } = process.env;
const TABLE = "NpmTable";
const ARRIVE_WAIT_MS = 30_000;
const credential = new AzureNamedKeyCredential(ACCOUNT, KEY);
const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };

const service = new TableServiceClient(PRIMARY, credential, options);
const table = new TableClient(PRIMARY, TABLE, credential, options);
const second = new TableClient(SECONDARY, TABLE, credential, options);
const secondService = new TableServiceClient(SECONDARY, credential, options);

// fails requires that a call is refused with this status and code.
async function fails(call, status, code) {
  await assert.rejects(call, (err) => {
    assert.equal(err.statusCode, status, `${code}: ${err}`);
    assert.equal(err.details?.odataError?.code ?? err.code, code, `${err}`);
    return true;
  });
}

// eventually repeats check until it returns something other than undefined.
async function eventually(what, check) {
  const end = Date.now() + ARRIVE_WAIT_MS;
  for (;;) {
    let got, err;
    try {
      got = await check();
    } catch (e) {
      err = e;
    }
    if (got !== undefined) return got;
    assert.ok(Date.now() < end, `${what} did not happen in time: ${err}`);
    await sleep(50);
  }
}

// bare is an entity without what differs by endpoint.
function bare(entity) {
  const { "odata.metadata": _, ...rest } = entity;
  return rest;
}

async function entities() {
  await service.createTable(TABLE);
  // The client's own createTable takes a 409 for success.
  await service.createTable(TABLE);
  const names = [];
  for await (const t of service.listTables({ queryOptions: { filter: odata`TableName eq ${TABLE}` } })) names.push(t.name);
  assert.deepEqual(names, [TABLE]);
  const full = {
    partitionKey: "O'Hara & søn", rowKey: "r 1+%;", text: "one", yes: true, small: -7, half: 0.5,
    big: 9007199254740993n, when: new Date("2009-04-30T20:45:13Z"), raw: new Uint8Array([0, 1, 255]),
    id: { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" },
  };
  const key = [full.partitionKey, full.rowKey];
  const created = await table.createEntity(full);
  await fails(table.createEntity(full), 409, "EntityAlreadyExists");
  await fails(table.getEntity("none", "none"), 404, "ResourceNotFound");

  const got = await table.getEntity(...key);
  assert.equal(got.etag, created.etag);
  assert.equal(got.text, "one");
  assert.equal(got.big, full.big);
  assert.deepEqual([...got.raw], [0, 1, 255]);
  assert.equal(got.half, 0.5);

  const merge = { partitionKey: key[0], rowKey: key[1], text: "two" };
  const merged = await table.updateEntity(merge, "Merge", { etag: created.etag });
  assert.notEqual(merged.etag, created.etag);
  await fails(table.updateEntity(merge, "Merge", { etag: created.etag }), 412, "UpdateConditionNotSatisfied");
  assert.equal((await table.getEntity(...key)).yes, true);
  await table.updateEntity(merge, "Replace", { etag: "*" });
  assert.equal((await table.getEntity(...key)).yes, undefined);
  await fails(table.deleteEntity(...key, { etag: merged.etag }), 412, "UpdateConditionNotSatisfied");
  await table.deleteEntity(...key);
  await fails(table.getEntity(...key), 404, "ResourceNotFound");
  await table.upsertEntity(full, "Replace");
}

async function queries() {
  for (let i = 0; i < 25; i++) {
    await table.createEntity({ partitionKey: "query", rowKey: String(i).padStart(3, "0"), n: i });
  }
  const filter = odata`PartitionKey eq ${"query"}`;
  const pages = [];
  for await (const page of table.listEntities({ queryOptions: { filter } }).byPage({ maxPageSize: 10 })) {
    pages.push(page.map((e) => e.n));
  }
  assert.deepEqual(pages.flat(), [...Array(25).keys()]);
  assert.ok(pages.length >= 3, `${pages.length} pages`);

  // A token outlives the client that got it, and it goes on at -secondary too.
  const newest = await table.getEntity("query", "024");
  await eventually("rows at -secondary", async () => (await second.getEntity("query", "024")).etag === newest.etag || undefined);
  const first = (await table.listEntities({ queryOptions: { filter } }).byPage({ maxPageSize: 10 }).next()).value;
  for (const t of [new TableClient(PRIMARY, TABLE, credential, options), second]) {
    const rest = [];
    for await (const page of t.listEntities({ queryOptions: { filter } }).byPage({ continuationToken: first.continuationToken })) {
      rest.push(...page.map((e) => e.n));
    }
    assert.deepEqual(rest, [...Array(15).keys()].map((i) => i + 10));
  }
}

async function transactions() {
  const entity = (rowKey, more) => ({ partitionKey: "batch", rowKey, ...more });
  const fill = [...Array(100).keys()].map((i) => ["create", entity(String(i).padStart(3, "0"), { n: i, kept: true })]);
  const filled = await table.submitTransaction(fill);
  assert.equal(filled.status, 202);
  assert.equal(filled.subResponses.length, 100);
  const first = filled.getResponseForEntity("000");
  assert.equal(first.status, 204);
  assert.equal(first.etag, (await table.getEntity("batch", "000")).etag);

  await table.submitTransaction([
    ["update", entity("000", { n: "merged" }), "Merge", { etag: first.etag }],
    ["update", entity("001", { n: "replaced" }), "Replace"],
    ["upsert", entity("002", { n: "upmerged" }), "Merge"],
    ["upsert", entity("O'Hara & søn", { n: "upserted" }), "Replace"],
    ["delete", entity("003")],
  ]);
  const left = [];
  for await (const e of table.listEntities({ queryOptions: { filter: odata`PartitionKey eq ${"batch"} and (RowKey lt ${"005"} or not kept)` } })) {
    left.push(`${e.rowKey} ${e.n}`);
  }
  assert.deepEqual(left, ["000 merged", "001 replaced", "002 upmerged", "004 4", "O'Hara & søn upserted"]);

  await fails(table.submitTransaction([["create", entity("lost")], ["create", entity("000")]]), 409, "EntityAlreadyExists");
  await fails(table.submitTransaction([["create", entity("lost")], ["update", entity("000"), "Merge", { etag: first.etag }]]), 412, "UpdateConditionNotSatisfied");
  await fails(table.submitTransaction([["create", entity("lost")], ["delete", entity("003")]]), 404, "ResourceNotFound");
  await fails(table.getEntity("batch", "lost"), 404, "ResourceNotFound");
  await fails(second.submitTransaction(fill), 403, "InsufficientAccountPermissions");
}

async function secondary() {
  const created = await table.createEntity({ partitionKey: "p", rowKey: "kept", text: "geo", big: 1n });
  const there = await eventually("entity at -secondary", () => second.getEntity("p", "kept"));
  assert.equal(there.etag, created.etag);
  assert.deepEqual(bare(there), bare(await table.getEntity("p", "kept")));

  await fails(second.createEntity({ partitionKey: "p", rowKey: "new" }), 403, "InsufficientAccountPermissions");
  await fails(second.upsertEntity({ partitionKey: "p", rowKey: "kept" }), 403, "InsufficientAccountPermissions");
  await fails(
    second.updateEntity({ partitionKey: "p", rowKey: "kept", text: "x" }, "Merge", { etag: "*" }),
    403, "InsufficientAccountPermissions");
  await fails(second.deleteEntity("p", "kept"), 403, "InsufficientAccountPermissions");
  await fails(secondService.createTable("Other"), 403, "InsufficientAccountPermissions");
  assert.equal((await second.getEntity("p", "kept")).etag, created.etag);

  const { geoReplication } = await service.getStatistics();
  assert.equal(geoReplication.status, "live");
  const age = Date.now() - geoReplication.lastSyncTime.getTime();
  assert.ok(age >= 0 && age < ARRIVE_WAIT_MS, `last sync time is ${age} ms old`);
}

// Clients without a key do what their signature permits, at the primary and at -secondary.
async function signatures() {
  const expiresOn = new Date(Date.now() + 3600_000);
  const by = (sas, base = PRIMARY) => new TableClient(base, TABLE, new AzureSASCredential(sas), options);
  for (const partitionKey of ["sas-a", "sas-b"]) await table.createEntity({ partitionKey, rowKey: "r" });
  const ranged = generateTableSas(TABLE, credential, {
    permissions: { query: true, add: true }, expiresOn, startPartitionKey: "sas-a", endPartitionKey: "sas-a",
  });
  const guest = by(ranged);
  const seen = [];
  for await (const e of guest.listEntities()) seen.push(e.partitionKey);
  assert.deepEqual(seen, ["sas-a"]);
  await fails(guest.getEntity("sas-b", "r"), 404, "ResourceNotFound");
  await fails(guest.createEntity({ partitionKey: "sas-b", rowKey: "new" }), 403, "AuthorizationFailure");
  await fails(guest.deleteEntity("sas-a", "r"), 403, "AuthorizationPermissionMismatch");
  await guest.submitTransaction([["create", { partitionKey: "sas-a", rowKey: "1" }], ["create", { partitionKey: "sas-a", rowKey: "2" }]]);
  await eventually("row at -secondary", () => by(ranged, SECONDARY).getEntity("sas-a", "2"));

  await table.setAccessPolicy([{ id: "readers", accessPolicy: { expiry: expiresOn, permission: "r" } }]);
  assert.equal((await table.getAccessPolicy())[0].id, "readers");
  const stored = generateTableSas(TABLE, credential, { identifier: "readers" });
  await by(stored).getEntity("sas-b", "r");
  await table.setAccessPolicy([]);
  await fails(by(stored).getEntity("sas-b", "r"), 403, "AuthenticationFailed");

  const account = generateAccountSas(credential, { permissions: { list: true }, resourceTypes: "c", expiresOn });
  const names = [];
  for await (const t of new TableServiceClient(PRIMARY, new AzureSASCredential(account), options).listTables()) names.push(t.name);
  assert.ok(names.includes(TABLE));
}

await entities();
await signatures();
await queries();
await transactions();
await secondary();
await service.deleteTable(TABLE);
await fails(table.getEntity("p", "kept"), 404, "TableNotFound");
console.log("all checks passed");
