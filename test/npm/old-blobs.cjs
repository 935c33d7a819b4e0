// Drives antipode dev with the blob half of the last release of azure-storage, which
// speaks as clients of before 2020 do: one Put Blob below 32 MiB and blocks from there,
// downloads in ranges with their MD5, and reads at -secondary by a location mode.
// Exits 0 and says "all checks passed", or fails with the first broken promise.
const assert = require("node:assert/strict");
const { randomBytes, createHash } = require("node:crypto");
const fs = require("node:fs");
const { Readable, Writable } = require("node:stream");
const { setTimeout: sleep } = require("node:timers/promises");
const storage = require("azure-storage");

const { PRIMARY, SECONDARY, ACCOUNT, KEY } = process.env;
const CONTAINER = "old-blobs";
const ARRIVE_WAIT_MS = 30_000;
const { AccessCondition } = storage;
const { LocationMode } = storage.StorageUtilities;
const there = { locationMode: LocationMode.SECONDARY_ONLY };
const hosts = { primaryHost: PRIMARY, secondaryHost: SECONDARY };
const primary = storage.createBlobService(ACCOUNT, KEY, hosts);
const second = storage.createBlobService(ACCOUNT, KEY, SECONDARY);

// call makes a promise of a call of the client at the primary, callAt of any client.
const call = (name, ...args) => callAt(primary, name, ...args);

function callAt(service, name, ...args) {
  return new Promise((resolve, reject) =>
    service[name](...args, (err, result) => (err ? reject(err) : resolve(result))));
}

// fails requires that a call is refused with this status and code. An answer to HEAD has
// no body, and the client then names the code after the status.
async function fails(promise, status, code) {
  await assert.rejects(promise, (err) => {
    assert.equal(`${err.statusCode} ${err.code}`, `${status} ${code}`, `${err}`);
    return true;
  });
}

// arrived waits until -secondary has a blob with this tag.
async function arrived(name, etag) {
  for (const end = Date.now() + ARRIVE_WAIT_MS; ;) {
    const got = await call("doesBlobExist", CONTAINER, name, there);
    if (got.exists && got.etag === etag) return;
    assert.ok(Date.now() < end, `${name} did not arrive in time`);
    await sleep(50);
  }
}

// download reads a blob, or a range of it. The client takes a location mode for text and
// for all that is no download; for this it needs a service whose primary is -secondary.
async function download(name, options, service = primary) {
  const chunks = [];
  const sink = new Writable({ write: (chunk, _, done) => (chunks.push(chunk), done()) });
  await callAt(service, "getBlobToStream", CONTAINER, name, sink, options);
  return Buffer.concat(chunks);
}

async function containers() {
  assert.equal((await call("createContainerIfNotExists", CONTAINER, { metadata: { of: "old" } })).created, true);
  assert.equal((await call("createContainerIfNotExists", CONTAINER)).created, false);
  await fails(call("createContainer", CONTAINER), 409, "ContainerAlreadyExists");
  assert.equal((await call("doesContainerExist", CONTAINER)).exists, true);
  assert.equal((await call("doesContainerExist", "old-none")).exists, false);
  await call("setContainerMetadata", CONTAINER, { changed: "yes" });
  assert.deepEqual((await call("getContainerMetadata", CONTAINER)).metadata, { changed: "yes" });
  const listed = await call("listContainersSegmentedWithPrefix", "old-b", null, { include: "metadata" });
  assert.deepEqual(listed.entries.map((c) => [c.name, c.metadata]), [[CONTAINER, { changed: "yes" }]]);
  await fails(call("createBlockBlobFromText", "old-none", "x", "x"), 404, "ContainerNotFound");
  await fails(call("listBlobsSegmented", "old-none", null), 404, "ContainerNotFound");
}

async function small() {
  const put = await call("createBlockBlobFromText", CONTAINER, "søn & co+%.txt", "Hällo", {
    metadata: { one: "1" }, contentSettings: { contentType: "text/x-test", cacheControl: "no-cache" },
  });
  assert.equal(await call("getBlobToText", CONTAINER, "søn & co+%.txt"), "Hällo");
  const got = await call("getBlobProperties", CONTAINER, "søn & co+%.txt");
  assert.equal(got.etag, put.etag);
  assert.equal(got.contentLength, "6");
  assert.equal(got.contentSettings.contentType, "text/x-test");
  assert.equal(got.contentSettings.cacheControl, "no-cache");
  assert.equal(got.blobType, "BlockBlob");
  assert.deepEqual(got.metadata, { one: "1" });
  await call("createBlockBlobFromText", CONTAINER, "empty", "");
  assert.equal((await download("empty")).length, 0);
}

// large uploads more than the client puts in one request.
async function large() {
  const content = randomBytes((33 << 20) + 7);
  await call("createBlockBlobFromStream", CONTAINER, "dir/large", Readable.from([content]), content.length, {
    storeBlobContentMD5: true, metadata: { kind: "large" },
  });
  const blocks = await call("listBlocks", CONTAINER, "dir/large", "committed");
  assert.equal(blocks.CommittedBlocks.length, 9);
  const props = await call("getBlobProperties", CONTAINER, "dir/large");
  assert.equal(props.contentSettings.contentMD5, createHash("md5").update(content).digest("base64"));
  assert.deepEqual(props.metadata, { kind: "large" });
  await arrived("dir/large", props.etag);
  for (const service of [primary, second]) {
    await callAt(service, "getBlobToLocalFile", CONTAINER, "dir/large", "large.bin");
    assert.ok(fs.readFileSync("large.bin").equals(content), "the large blob differs");
    const part = await download("dir/large", { rangeStart: (4 << 20) - 3, rangeEnd: (4 << 20) + 3 }, service);
    assert.ok(part.equals(content.subarray((4 << 20) - 3, (4 << 20) + 4)), "a range differs");
  }
  fs.writeFileSync("large.bin", content.subarray(5));
  await call("createBlockBlobFromLocalFile", CONTAINER, "dir/large", "large.bin");
  assert.ok((await download("dir/large")).equals(content.subarray(5)), "the blob put over it differs");
}

// resume goes on with an upload by what Get Block List says is there.
async function resume() {
  const ids = [0, 1, 2].map((i) => primary.getBlockId("resumed", i));
  const text = (i) => `part ${i};`.repeat(5000);
  await call("createBlockFromText", ids[0], CONTAINER, "resumed", text(0));
  await call("createBlockFromText", ids[2], CONTAINER, "resumed", text(2));
  assert.equal((await call("doesBlobExist", CONTAINER, "resumed")).exists, false);
  await fails(call("commitBlocks", CONTAINER, "resumed", { UncommittedBlocks: ids }), 400, "InvalidBlockList");
  const { UncommittedBlocks: left } = await call("listBlocks", CONTAINER, "resumed", "all");
  const names = left.map((b) => b.Name);
  assert.deepEqual(names, [ids[0], ids[2]]);
  for (const id of ids.filter((id) => !names.includes(id))) {
    await call("createBlockFromText", id, CONTAINER, "resumed", text(ids.indexOf(id)));
  }
  await call("commitBlocks", CONTAINER, "resumed", { UncommittedBlocks: ids });
  assert.equal(await call("getBlobToText", CONTAINER, "resumed"), text(0) + text(1) + text(2));
  await call("commitBlocks", CONTAINER, "resumed", { CommittedBlocks: [ids[2], ids[0]] });
  assert.equal(await call("getBlobToText", CONTAINER, "resumed"), text(2) + text(0));
}

async function conditions() {
  const put = (text, accessConditions) => call("createBlockBlobFromText", CONTAINER, "kept", text, { accessConditions });
  const first = await put("one", AccessCondition.generateIfNotExistsCondition());
  await fails(put("two", AccessCondition.generateIfNotExistsCondition()), 409, "BlobAlreadyExists");
  const over = await put("three", AccessCondition.generateIfMatchCondition(first.etag));
  await fails(put("four", AccessCondition.generateIfMatchCondition(first.etag)), 412, "ConditionNotMet");
  assert.equal(await call("getBlobToText", CONTAINER, "kept"), "three");

  const large = Readable.from([Buffer.alloc(33 << 20)]);
  await fails(call("createBlockBlobFromStream", CONTAINER, "kept", large, 33 << 20,
    { accessConditions: AccessCondition.generateIfNotExistsCondition() }), 409, "BlobAlreadyExists");

  const stale = { accessConditions: AccessCondition.generateIfMatchCondition(first.etag) };
  await fails(call("setBlobMetadata", CONTAINER, "kept", { a: "b" }, stale), 412, "ConditionNotMet");
  await call("setBlobMetadata", CONTAINER, "kept", { two: "2" }, { accessConditions: AccessCondition.generateIfMatchCondition(over.etag) });
  assert.deepEqual((await call("getBlobMetadata", CONTAINER, "kept")).metadata, { two: "2" });
  const set = await call("setBlobProperties", CONTAINER, "kept", { contentType: "text/x", contentLanguage: "da" });
  const got = await call("getBlobProperties", CONTAINER, "kept");
  assert.equal(got.etag, set.etag);
  assert.equal(got.contentSettings.contentLanguage, "da");
  assert.deepEqual(got.metadata, { two: "2" });
  await fails(call("deleteBlob", CONTAINER, "kept", stale), 412, "ConditionNotMet");
}

// pages lists with a token from each page to the next. The token goes through JSON, as in
// a client that stops and goes on later.
async function pages(prefix, options, method = "listBlobsSegmentedWithPrefix") {
  const out = [];
  for (let token = null; ;) {
    const page = await call(method, CONTAINER, prefix, token, options);
    assert.ok(page.entries.length <= (options.maxResults ?? 5000));
    out.push(...page.entries.map((e) => e.name));
    if (!page.continuationToken) return out;
    token = JSON.parse(JSON.stringify(page.continuationToken));
  }
}

async function lists() {
  const names = ["list/a", "list/b/1", "list/b/2", "list/c & <d>", "list/e/1", "list/søn"];
  let last;
  for (const name of names) last = await call("createBlockBlobFromText", CONTAINER, name, name);
  await arrived(names.at(-1), last.etag);
  for (const options of [{}, there]) {
    assert.deepEqual(await pages("list/", { maxResults: 2, ...options }), names);
    assert.deepEqual(await pages("list/", { maxResults: 1, delimiter: "/", ...options }), ["list/a", "list/c & <d>", "list/søn"]);
    assert.deepEqual(await pages("list/", { maxResults: 1, ...options }, "listBlobDirectoriesSegmentedWithPrefix"), ["list/b/", "list/e/"]);
    assert.deepEqual(await pages("none/", options), []);
  }
  const all = await pages(null, { maxResults: 3 });
  assert.deepEqual(all, ["dir/large", "empty", "kept", ...names, "resumed", "søn & co+%.txt"]);
}

async function secondary() {
  const put = await call("createBlockBlobFromText", CONTAINER, "read", "everywhere", { metadata: { at: "both" } });
  await arrived("read", put.etag);
  for (const locationMode of [LocationMode.SECONDARY_ONLY, LocationMode.PRIMARY_THEN_SECONDARY, LocationMode.SECONDARY_THEN_PRIMARY]) {
    assert.equal(await call("getBlobToText", CONTAINER, "read", { locationMode }), "everywhere");
    const got = await call("getBlobProperties", CONTAINER, "read", { locationMode });
    assert.equal(got.etag, put.etag);
    assert.deepEqual(got.metadata, { at: "both" });
  }
  // A client with no primary left reads on, since nothing listens on port 1.
  const cut = storage.createBlobService(ACCOUNT, KEY, { ...hosts, primaryHost: `http://127.0.0.1:1/${ACCOUNT}` })
    .withFilter(new storage.LinearRetryPolicyFilter(2, 10));
  assert.equal(await callAt(cut, "getBlobToText", CONTAINER, "read", { locationMode: LocationMode.PRIMARY_THEN_SECONDARY }), "everywhere");

  const refused = [
    ["createBlockBlobFromText", CONTAINER, "read", "x"], ["createBlockFromText", "YQ==", CONTAINER, "read", "x"],
    ["commitBlocks", CONTAINER, "read", { LatestBlocks: [] }], ["setBlobMetadata", CONTAINER, "read", { a: "b" }],
    ["setBlobProperties", CONTAINER, "read", {}], ["deleteBlob", CONTAINER, "read"],
    ["createContainer", "old-refused"], ["deleteContainer", CONTAINER],
  ];
  for (const [name, ...args] of refused) await fails(callAt(second, name, ...args), 403, "InsufficientAccountPermissions");
  assert.equal(await callAt(second, "getBlobToText", CONTAINER, "read"), "everywhere");

  const { GeoReplication } = await call("getServiceStats", there);
  assert.equal(GeoReplication.Status, "live");
  const age = Date.now() - Date.parse(GeoReplication.LastSyncTime);
  assert.ok(age >= 0 && age < ARRIVE_WAIT_MS, `last sync time is ${age} ms old`);
}

async function deletes() {
  await call("deleteBlob", CONTAINER, "read");
  await fails(call("getBlobToText", CONTAINER, "read"), 404, "BlobNotFound");
  await fails(call("getBlobProperties", CONTAINER, "read"), 404, "NotFound");
  await fails(call("deleteBlob", CONTAINER, "read"), 404, "BlobNotFound");
  assert.equal(await call("deleteBlobIfExists", CONTAINER, "read"), false);
  for (const end = Date.now() + ARRIVE_WAIT_MS; (await call("doesBlobExist", CONTAINER, "read", there)).exists;) {
    assert.ok(Date.now() < end, "the delete did not arrive in time");
    await sleep(50);
  }
  assert.equal(await call("deleteContainerIfExists", CONTAINER), true);
  assert.equal((await call("doesContainerExist", CONTAINER)).exists, false);
}

async function snapshots() {
  await call("createBlockBlobFromText", CONTAINER, "kept", "one");
  const made = await call("createBlobSnapshot", CONTAINER, "kept");
  await call("createBlockBlobFromText", CONTAINER, "kept", "two");
  assert.equal(await call("getBlobToText", CONTAINER, "kept", { snapshotId: made }), "one");
  await fails(call("deleteBlob", CONTAINER, "kept"), 409, "SnapshotsPresent");
  const { entries } = await call("listBlobsSegmentedWithPrefix", CONTAINER, "kept", null, { include: "snapshots" });
  assert.deepEqual(entries.map((e) => e.snapshot !== undefined), [true, false]);
  await call("deleteBlob", CONTAINER, "kept", { deleteSnapshots: "include" });
}

async function tiers() {
  await call("createBlockBlobFromText", CONTAINER, "tiered", "x");
  await call("setBlobTier", CONTAINER, "tiered", "Archive");
  await fails(call("getBlobToText", CONTAINER, "tiered"), 409, "BlobArchived");
  assert.equal((await call("getBlobProperties", CONTAINER, "tiered")).accessTier, "Archive");
  await call("setBlobTier", CONTAINER, "tiered", "Cool");
  assert.equal(await call("getBlobToText", CONTAINER, "tiered"), "x");
  assert.equal((await call("listBlobsSegmentedWithPrefix", CONTAINER, "tiered", null)).entries[0].accessTier, "Cool");
  await call("deleteBlob", CONTAINER, "tiered");
}

async function leases() {
  await call("createBlockBlobFromText", CONTAINER, "leased", "x");
  const { id } = await call("acquireLease", CONTAINER, "leased", { leaseDuration: 15 });
  await fails(call("createBlockBlobFromText", CONTAINER, "leased", "y"), 412, "LeaseIdMissing");
  await call("createBlockBlobFromText", CONTAINER, "leased", "y", { leaseId: id });
  await call("renewLease", CONTAINER, "leased", id);
  assert.equal((await call("getBlobProperties", CONTAINER, "leased")).lease.state, "leased");
  await call("breakLease", CONTAINER, "leased", { leaseBreakPeriod: 0 });
  await call("releaseLease", CONTAINER, "leased", id);
  await call("deleteBlob", CONTAINER, "leased");
  const held = await call("acquireLease", CONTAINER, null);
  await fails(call("deleteContainer", CONTAINER), 412, "LeaseIdMissing");
  await call("releaseLease", CONTAINER, null, held.id);
}

async function appends() {
  await call("createOrReplaceAppendBlob", CONTAINER, "log", { contentSettings: { contentType: "text/plain" } });
  assert.equal((await call("appendFromText", CONTAINER, "log", "one,")).appendOffset, "0");
  const two = await call("appendBlockFromText", CONTAINER, "log", "two", { appendPosition: 4, maxBlobSize: 7 });
  assert.equal(two.committedBlockCount, "2");
  await fails(call("appendBlockFromText", CONTAINER, "log", "x", { appendPosition: 4 }), 412, "AppendPositionConditionNotMet");
  await fails(call("appendBlockFromText", CONTAINER, "log", "x", { maxBlobSize: 7 }), 412, "MaxBlobSizeConditionNotMet");
  assert.equal((await download("log")).toString(), "one,two");
  const of = await call("getBlobProperties", CONTAINER, "log");
  assert.deepEqual([of.blobType, of.committedBlockCount, of.contentLength], ["AppendBlob", "2", "7"]);
  await arrived("log", two.etag);
  // In blocks of 4 MiB, one after the other as long as no part of the stream is longer.
  const long = randomBytes(9 << 20);
  const parts = [...Array(144).keys()].map((i) => long.subarray(i << 16, (i + 1) << 16));
  await call("createAppendBlobFromStream", CONTAINER, "log", Readable.from(parts), long.length);
  assert.ok((await download("log")).equals(long));
  assert.equal((await call("listBlobsSegmentedWithPrefix", CONTAINER, "log", null)).entries[0].blobType, "AppendBlob");
  await call("deleteBlob", CONTAINER, "log");
}

// root writes a blob of the root container and reads it at both locations.
async function root() {
  await call("createContainer", "$root");
  const { etag } = await call("createBlockBlobFromText", "$root", "short.txt", "x");
  assert.equal(await call("getBlobToText", "$root", "short.txt"), "x");
  for (const end = Date.now() + ARRIVE_WAIT_MS; ; await sleep(50)) {
    const got = await call("doesBlobExist", "$root", "short.txt", there);
    if (got.exists && got.etag === etag) break;
    assert.ok(Date.now() < end, "the root container did not arrive in time");
  }
  assert.equal(await call("getBlobToText", "$root", "short.txt", there), "x");
  assert.deepEqual((await call("listBlobsSegmented", "$root", null)).entries.map((b) => b.name), ["short.txt"]);
  await call("deleteContainer", "$root");
}

async function copies() {
  await call("createBlockBlobFromText", CONTAINER, "copied", "hello", { metadata: { of: "copied" } });
  const made = await call("startCopyBlob", primary.getUrl(CONTAINER, "copied"), CONTAINER, "copy");
  assert.equal(made.copy.status, "success");
  const of = await call("getBlobProperties", CONTAINER, "copy");
  assert.deepEqual([of.copy.id, of.copy.status, of.copy.progress, of.copy.source, of.metadata.of],
    [made.copy.id, "success", "5/5", primary.getUrl(CONTAINER, "copied"), "copied"]);
  await fails(call("abortCopyBlob", CONTAINER, "copy", made.copy.id), 409, "NoPendingCopyOperation");
  await fails(call("startCopyBlob", primary.getUrl(CONTAINER, "copied"), CONTAINER, "copy",
    { accessConditions: AccessCondition.generateIfNotExistsCondition() }), 409, "BlobAlreadyExists");
  await arrived("copy", of.etag);
  assert.equal(await callAt(second, "getBlobToText", CONTAINER, "copy"), "hello");
  const { entries } = await call("listBlobsSegmentedWithPrefix", CONTAINER, "copy", null, { include: "copy" });
  assert.equal(entries[0].copy.id, of.copy.id);
  for (const name of ["copied", "copy"]) await call("deleteBlob", CONTAINER, name);
}

(async () => {
  await containers();
  await small();
  await large();
  await resume();
  await conditions();
  await lists();
  await secondary();
  await leases();
  await snapshots();
  await tiers();
  await appends();
  await root();
  await copies();
  await deletes();
  console.log("all checks passed");
})().catch((err) => {
  console.error(err);
  process.exit(1);
});
