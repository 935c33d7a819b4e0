// Drives antipode dev with the official JavaScript blob client: uploads in one piece and
// in blocks, listings, metadata, conditions, and the same bytes and tags at -secondary.
// Exits 0 and says "all checks passed", or fails with the first broken promise.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import dns from "node:dns";
import { setTimeout as sleep } from "node:timers/promises";

// Not every resolver knows that *.localhost is this machine.
const lookup = dns.lookup;
dns.lookup = (host, options, done) =>
  lookup(host.endsWith(".localhost") ? "127.0.0.1" : host, options, done);

const {
  BlobClient, BlobSASPermissions, BlobServiceClient, BlockBlobClient, ContainerClient, ContainerSASPermissions,
  StorageSharedKeyCredential,
} = await import("@azure/storage-blob");

const { PRIMARY, SECONDARY, ACCOUNT, KEY } = process.env;
const ARRIVE_WAIT_MS = 30_000;
const credential = new StorageSharedKeyCredential(ACCOUNT, KEY);
const options = { retryOptions: { maxTries: 1 } };
const service = new BlobServiceClient(PRIMARY, credential, options);
const container = service.getContainerClient("npm-blobs");
const second = new BlobServiceClient(SECONDARY, credential, options).getContainerClient("npm-blobs");

// fails requires that a call is refused with this status and code.
async function fails(call, status, code) {
  await assert.rejects(call, (err) => {
    assert.equal(`${err.statusCode} ${err.code ?? err.details?.errorCode}`, `${status} ${code}`, `${err}`);
    return true;
  });
}

// arrived waits until -secondary has a blob with this tag.
async function arrived(name, etag) {
  const end = Date.now() + ARRIVE_WAIT_MS;
  for (;;) {
    try {
      if ((await second.getBlobClient(name).getProperties()).etag === etag) return;
    } catch (err) {
      assert.equal(err.statusCode, 404, `${err}`);
    }
    assert.ok(Date.now() < end, `${name} did not arrive in time`);
    await sleep(50);
  }
}

async function same(name, content) {
  for (const c of [container, second]) {
    const got = await c.getBlobClient(name).downloadToBuffer();
    assert.ok(got.equals(content), `${name}: ${got.length} bytes differ from the ${content.length} written`);
  }
}

async function pieces() {
  for (const size of [0, 11, 20 << 10, 5 << 20]) {
    const name = `dir/size ${size}+%.bin`;
    const content = randomBytes(size);
    const blob = container.getBlockBlobClient(name);
    const put = await blob.upload(content, content.length);
    assert.equal((await blob.getProperties()).etag, put.etag);
    await arrived(name, put.etag);
    if (size > 0) await same(name, content);
  }
  const blob = container.getBlockBlobClient("dir/size 11+%.bin");
  await fails(blob.upload("x", 1, { conditions: { ifNoneMatch: "*" } }), 409, "BlobAlreadyExists");
  await fails(blob.upload("x", 1, { conditions: { ifMatch: '"0x1"' } }), 412, "ConditionNotMet");
  assert.equal(await blob.exists(), true);
  assert.equal(await container.getBlobClient("none").exists(), false);
}

async function blocks() {
  const content = randomBytes(9 << 20);
  const name = "blocks";
  const blob = container.getBlockBlobClient(name);
  const put = await blob.uploadData(content, { blockSize: 1 << 20, maxSingleShotSize: 1 << 20, concurrency: 4, metadata: { kind: "blocks" } });
  assert.equal((await blob.getBlockList("committed")).committedBlocks.length, 9);
  await arrived(name, put.etag);
  await same(name, content);
  const part = await second.getBlobClient(name).downloadToBuffer(3 << 20, 100);
  assert.ok(part.equals(content.subarray(3 << 20, (3 << 20) + 100)));

  // An upload that was broken off goes on by what Get Block List says is there.
  const parts = ["one", "two", "three"];
  const ids = parts.map((_, i) => Buffer.from(`part-${i}`).toString("base64"));
  const resumed = container.getBlockBlobClient("resumed");
  for (const i of [0, 2]) await resumed.stageBlock(ids[i], parts[i], parts[i].length);
  assert.equal(await resumed.exists(), false);
  const left = (await resumed.getBlockList("uncommitted")).uncommittedBlocks.map((b) => b.name);
  assert.deepEqual(left, [ids[0], ids[2]]);
  for (const [i, part] of parts.entries()) if (!left.includes(ids[i])) await resumed.stageBlock(ids[i], part, part.length);
  await arrived("resumed", (await resumed.commitBlockList(ids)).etag);
  await same("resumed", Buffer.from(parts.join("")));
  await resumed.delete();

  const id = Buffer.from("block-0001").toString("base64");
  await blob.stageBlock(id, "tail", 4);
  await fails(blob.commitBlockList([Buffer.from("block-none").toString("base64")]), 400, "InvalidBlockList");
  const edited = await blob.commitBlockList([id]);
  await arrived(name, edited.etag);
  await same(name, Buffer.from("tail"));
}

async function properties() {
  const blob = container.getBlockBlobClient("described");
  const content = Buffer.from("described");
  await blob.upload(content, content.length, {
    blobHTTPHeaders: { blobContentType: "text/x-test", blobCacheControl: "no-cache" }, metadata: { one: "1" },
  });
  await blob.setMetadata({ two: "2" });
  const set = await blob.setHTTPHeaders({ blobContentType: "text/plain", blobContentMD5: createHash("md5").update(content).digest() });
  await arrived("described", set.etag);
  for (const c of [container, second]) {
    const got = await c.getBlobClient("described").getProperties();
    assert.deepEqual(got.metadata, { two: "2" });
    assert.equal(got.contentType, "text/plain");
    assert.equal(got.etag, set.etag);
  }
}

async function lists() {
  const names = [];
  for await (const page of container.listBlobsFlat().byPage({ maxPageSize: 2 })) {
    names.push(...page.segment.blobItems.map((b) => b.name));
  }
  assert.deepEqual(names, [...names].sort());
  assert.equal(names.length, 6);
  // A token outlives the client that got it, and there it goes on too.
  const first = (await container.listBlobsFlat().byPage({ maxPageSize: 2 }).next()).value;
  for (const c of [container, second]) {
    const rest = [];
    for await (const page of c.listBlobsFlat().byPage({ maxPageSize: 2, continuationToken: first.continuationToken })) {
      rest.push(...page.segment.blobItems.map((b) => b.name));
    }
    assert.deepEqual(rest, names.slice(2));
  }
  const top = [];
  for await (const item of container.listBlobsByHierarchy("/")) top.push(`${item.kind} ${item.name}`);
  assert.deepEqual(top.sort(), ["blob blocks", "blob described", "prefix dir/"]); // The client gives prefixes first.
  const there = [];
  for await (const item of second.listBlobsFlat({ prefix: "dir/", includeMetadata: true })) there.push(item.name);
  assert.deepEqual(there, names.filter((n) => n.startsWith("dir/")));
}

async function statistics() {
  const { geoReplication } = await new BlobServiceClient(SECONDARY, credential, options).getStatistics();
  assert.equal(geoReplication.status, "live");
  const age = Date.now() - geoReplication.lastSyncOn.getTime();
  assert.ok(age >= 0 && age < ARRIVE_WAIT_MS, `last sync time is ${age} ms old`);
}

// Clients without a key do what their signature permits, at the primary and at -secondary.
async function signatures() {
  const expiresOn = new Date(Date.now() + 3600_000);
  const url = await container.generateSasUrl({ permissions: ContainerSASPermissions.parse("rcl"), expiresOn });
  const guest = new ContainerClient(url, undefined, options);
  const made = guest.getBlockBlobClient("dir/made by+%");
  const { etag } = await made.upload("guest", 5);
  await fails(made.upload("again", 5), 403, "UnauthorizedBlobOverwrite");
  await fails(made.delete(), 403, "AuthorizationPermissionMismatch");
  await fails(guest.delete(), 403, "AuthorizationFailure");
  await arrived("dir/made by+%", etag);
  const there = new ContainerClient(url.replace(container.url, second.url), undefined, options);
  assert.equal((await there.getBlobClient("dir/made by+%").downloadToBuffer()).toString(), "guest");

  const shown = await container.getBlobClient("dir/made by+%").generateSasUrl({
    permissions: BlobSASPermissions.parse("r"), expiresOn, contentType: "text/x",
  });
  assert.equal((await new BlobClient(shown, undefined, options).getProperties()).contentType, "text/x");

  await container.setAccessPolicy(undefined, [{ id: "readers", accessPolicy: { expiresOn, permissions: "r" } }]);
  assert.equal((await container.getAccessPolicy()).signedIdentifiers[0].id, "readers");
  const stored = await container.generateSasUrl({ identifier: "readers" });
  await new ContainerClient(stored, undefined, options).getBlobClient("dir/made by+%").getProperties();
  await container.getBlobClient("dir/made by+%").delete();
}

// leases holds a blob and the container, and shows both at -secondary, which takes no action.
async function leases() {
  const blob = container.getBlockBlobClient("leased");
  const put = await blob.upload("x", 1);
  const lease = blob.getBlobLeaseClient();
  const got = await lease.acquireLease(15);
  assert.equal(got.etag, put.etag);
  await fails(blob.upload("y", 1), 412, "LeaseIdMissing");
  await fails(blob.getBlobLeaseClient().acquireLease(15), 409, "LeaseAlreadyPresent");
  await blob.setMetadata({ of: "lease" }, { conditions: { leaseId: lease.leaseId } });
  const changed = await lease.changeLease("0123abcd-0000-4000-8000-000000000001");
  assert.equal(changed.leaseId, "0123abcd-0000-4000-8000-000000000001");
  await lease.renewLease();
  const whole = container.getBlobLeaseClient();
  await whole.acquireLease(-1);
  await fails(container.delete(), 412, "LeaseIdMissing");
  for (const end = Date.now() + ARRIVE_WAIT_MS; ;) {
    const [of, box] = [await second.getBlobClient("leased").getProperties().catch(() => ({})), await second.getProperties()];
    if (of.leaseState === "leased" && box.leaseState === "leased") {
      assert.deepEqual([of.leaseDuration, of.leaseStatus, box.leaseDuration], ["fixed", "locked", "infinite"]);
      break;
    }
    assert.ok(Date.now() < end, "the leases did not arrive in time");
    await sleep(50);
  }
  await fails(second.getBlobClient("leased").getBlobLeaseClient(lease.leaseId).renewLease(), 403, "InsufficientAccountPermissions");
  assert.ok((await lease.breakLease(5)).leaseTime <= 5);
  await lease.releaseLease();
  await blob.delete();
  assert.equal((await whole.breakLease(0)).leaseTime, 0);
}

// snapshots keep what a blob was, at both locations.
async function snapshots() {
  const blob = container.getBlockBlobClient("kept");
  await blob.upload("one", 3, { metadata: { of: "one" } });
  const { snapshot, etag } = await blob.createSnapshot();
  assert.equal(etag, (await blob.getProperties()).etag);
  await blob.upload("two", 3);
  const old = blob.withSnapshot(snapshot);
  assert.equal((await old.downloadToBuffer()).toString(), "one");
  assert.deepEqual((await old.getProperties()).metadata, { of: "one" });
  await fails(blob.delete(), 409, "SnapshotsPresent");
  const listed = [];
  for await (const item of container.listBlobsFlat({ prefix: "kept", includeSnapshots: true })) {
    listed.push([item.name, item.snapshot]);
  }
  assert.deepEqual(listed, [["kept", snapshot], ["kept", undefined]]);
  for (const end = Date.now() + ARRIVE_WAIT_MS; ; await sleep(50)) {
    const got = await second.getBlobClient("kept").withSnapshot(snapshot).downloadToBuffer().catch(() => undefined);
    if (got !== undefined) {
      assert.equal(got.toString(), "one");
      break;
    }
    assert.ok(Date.now() < end, "the snapshot did not arrive in time");
  }
  await fails(second.getBlobClient("kept").createSnapshot(), 403, "InsufficientAccountPermissions");
  const expiresOn = new Date(Date.now() + 3600_000);
  const url = new URL(await old.generateSasUrl({ permissions: BlobSASPermissions.parse("r"), expiresOn }));
  assert.equal(url.searchParams.get("sr"), "bs");
  assert.equal((await new BlobClient(url.href, undefined, options).downloadToBuffer()).toString(), "one");
  url.searchParams.delete("snapshot");
  await fails(new BlobClient(url.href, undefined, options).getProperties(), 403, "AuthenticationFailed");
  await blob.delete({ deleteSnapshots: "include" });
}

// tags are written and read in every way, at both locations, and are conditions of writes.
async function tags() {
  const blob = container.getBlockBlobClient("tagged");
  const put = await blob.upload("x", 1, { tags: { "a b": "+/=", k: "1" } });
  assert.deepEqual((await blob.getTags()).tags, { "a b": "+/=", k: "1" });
  assert.equal((await blob.getProperties()).tagCount, 2);
  await fails(blob.setTags({ k: "2" }, { conditions: { tagConditions: "k = '2'" } }), 412, "ConditionNotMet");
  await blob.setTags({ k: "2" }, { conditions: { tagConditions: `k = '2' OR "a b" <> ''` } });
  await fails(blob.setMetadata({ a: "b" }, { conditions: { tagConditions: "k = '1'" } }), 412, "ConditionNotMet");
  for (const end = Date.now() + ARRIVE_WAIT_MS; ;) {
    const got = await second.getBlobClient("tagged").getTags().catch(() => ({}));
    if (got.tags?.k === "2") break;
    assert.ok(Date.now() < end, "the tags did not arrive in time");
    await sleep(50);
  }
  for (const c of [container, second]) {
    for await (const item of c.listBlobsFlat({ prefix: "tagged", includeTags: true })) {
      assert.deepEqual([item.tags, item.properties.tagCount ?? 1], [{ k: "2" }, 1]);
    }
    assert.equal((await c.getBlobClient("tagged").getProperties()).etag, put.etag);
  }
  await fails(second.getBlobClient("tagged").setTags({}), 403, "InsufficientAccountPermissions");
  await blob.delete({ conditions: { tagConditions: "k = '2'" } });
}

// tiers are set by writes and by themselves, and shown at both locations; an archived blob is not read.
async function tiers() {
  const blob = container.getBlockBlobClient("tiered");
  const put = await blob.upload("x", 1, { tier: "Cool" });
  await blob.setAccessTier("Archive");
  await fails(blob.download(), 409, "BlobArchived");
  await fails(blob.upload("y", 1), 409, "BlobArchived");
  const got = await blob.getProperties();
  assert.deepEqual([got.accessTier, got.etag, got.accessTierInferred], ["Archive", put.etag, undefined]);
  assert.ok(got.accessTierChangedOn instanceof Date);
  for (const end = Date.now() + ARRIVE_WAIT_MS; ;) {
    const of = await second.getBlobClient("tiered").getProperties().catch(() => ({}));
    if (of.accessTier === "Archive") break;
    assert.ok(Date.now() < end, "the tier did not arrive in time");
    await sleep(50);
  }
  await fails(second.getBlobClient("tiered").download(), 409, "BlobArchived");
  await fails(second.getBlobClient("tiered").setAccessTier("Hot"), 403, "InsufficientAccountPermissions");
  await blob.setAccessTier("Hot", { rehydratePriority: "High" });
  assert.equal((await blob.downloadToBuffer()).toString(), "x");
  for await (const item of container.listBlobsFlat({ prefix: "tiered" })) {
    assert.equal(item.properties.accessTier, "Hot");
  }
  await blob.delete();
}

// appends writes a log from several at once, seals it, and reads it at both locations.
async function appends() {
  const log = container.getAppendBlobClient("log");
  await log.create({ blobHTTPHeaders: { blobContentType: "text/plain" }, metadata: { of: "log" } });
  assert.equal((await log.createIfNotExists()).succeeded, false);
  const line = (i) => `line ${i} ${"x".repeat(i % 5 === 0 ? 20 << 10 : 5)}\n`;
  const put = await Promise.all([...Array(20).keys()].map((i) => log.appendBlock(line(i), line(i).length)));
  assert.deepEqual(put.map((p) => p.blobCommittedBlockCount).sort((a, b) => a - b), [...Array(20).keys()].map((i) => i + 1));
  const content = await log.downloadToBuffer();
  put.forEach((p, i) => assert.equal(content.subarray(+p.blobAppendOffset).toString("utf8", 0, line(i).length), line(i)));
  const last = { conditions: { appendPosition: content.length } };
  await fails(log.appendBlock("x", 1, { conditions: { appendPosition: 1 } }), 412, "AppendPositionConditionNotMet");
  await fails(log.appendBlock("x", 1, { conditions: { maxSize: 1 } }), 412, "MaxBlobSizeConditionNotMet");
  await fails(container.getAppendBlobClient("described").appendBlock("x", 1), 409, "InvalidBlobType");
  await fails(container.getBlockBlobClient("log").stageBlock("AAAA", "x", 1), 409, "InvalidBlobType");
  await fails(second.getAppendBlobClient("log").appendBlock("x", 1), 403, "InsufficientAccountPermissions");
  const body = Buffer.from("the end");
  const end = await log.appendBlock(body, body.length, {
    transactionalContentMD5: createHash("md5").update(body).digest(), ...last,
  });
  assert.equal(+end.blobAppendOffset, content.length);
  const sealed = await log.seal();
  assert.equal(sealed.etag, end.etag);
  assert.equal(sealed.isSealed, true);
  await fails(log.appendBlock("x", 1), 409, "BlobIsSealed");
  await arrived("log", end.etag);
  await same("log", Buffer.concat([content, body]));
  const of = await log.getProperties();
  assert.deepEqual([of.blobType, of.blobCommittedBlockCount, of.isSealed, of.accessTier], ["AppendBlob", 21, true, undefined]);
  for await (const item of container.listBlobsFlat({ prefix: "log" })) {
    assert.deepEqual([item.properties.blobType, item.properties.isSealed], ["AppendBlob", true]);
  }
  await log.delete();
}

// copies makes a copy in each way, by the key, by a signature and of -secondary, and reads each at both locations.
async function copies() {
  const content = randomBytes(5 << 20);
  const from = container.getBlockBlobClient("copied");
  const put = await from.uploadData(content, { blockSize: 1 << 20, maxSingleShotSize: 1 << 20, metadata: { of: "copied" }, tags: { k: "v" } });
  await arrived("copied", put.etag);
  const expiresOn = new Date(Date.now() + 3600_000);
  const signed = await from.generateSasUrl({ permissions: BlobSASPermissions.parse("rt"), expiresOn });
  for (const [way, url] of Object.entries({ key: from.url, sas: signed, far: second.getBlobClient("copied").url })) {
    const target = (name) => container.getBlockBlobClient(`copies/${way}/${name}`);
    const started = await (await target("begun").beginCopyFromURL(url, { tier: "Cool" })).pollUntilDone();
    assert.equal(started.copyStatus, "success");
    const synced = await target("synced").syncCopyFromURL(url, { sourceContentMD5: createHash("md5").update(content).digest() });
    assert.deepEqual([synced.copyStatus, synced.copyId.length], ["success", 36]);
    const uploaded = await target("uploaded").syncUploadFromURL(url, { conditions: { ifNoneMatch: "*" } });
    const blocks = target("blocks");
    await blocks.stageBlockFromURL("AAAA", url, 0, 3_000_000);
    await blocks.stageBlockFromURL("AAAB", url, 3_000_000, content.length - 3_000_000);
    const listed = await blocks.commitBlockList(["AAAA", "AAAB"]);
    const log = container.getAppendBlobClient(`copies/${way}/log`);
    await log.create();
    const appended = await log.appendBlockFromURL(url, 0, content.length);
    for (const [name, etag] of Object.entries({ begun: started.etag, synced: synced.etag, uploaded: uploaded.etag, blocks: listed.etag, log: appended.etag })) {
      await arrived(`copies/${way}/${name}`, etag);
      await same(`copies/${way}/${name}`, content);
    }
    const of = await target("begun").getProperties();
    assert.deepEqual([of.copyStatus, of.copyProgress, of.metadata.of, of.accessTier], ["success", `${content.length}/${content.length}`, "copied", "Cool"]);
    assert.equal(of.copySource, url.split("?")[0]);
    const whole = target("uploaded");
    await fails(whole.syncUploadFromURL(url, { conditions: { ifMatch: '"0x1"' } }), 412, "TargetConditionNotMet");
    await fails(whole.syncUploadFromURL(url, { sourceConditions: { ifMatch: '"0x1"' } }), 412, "SourceConditionNotMet");
    await fails(whole.abortCopyFromURL(started.copyId), 409, "NoPendingCopyOperation");
  }
  const tagged = container.getBlockBlobClient("copies/tagged");
  await tagged.syncCopyFromURL(signed, { copySourceTags: "COPY" });
  assert.deepEqual((await tagged.getTags()).tags, { k: "v" });
  await fails(second.getBlockBlobClient("copies/new").syncCopyFromURL(from.url), 403, "InsufficientAccountPermissions");
  let shown = 0;
  for await (const item of container.listBlobsFlat({ prefix: "copies/", includeCopy: true })) {
    if (item.properties.copyStatus === "success") shown++;
    await container.deleteBlob(item.name);
  }
  assert.equal(shown, 7);
  await from.delete();
}

// batches delete many blobs at once, of the account or of the container, and say of each what became of it.
async function batches() {
  const names = [...Array(256).keys()].map((i) => `batch/${i}+ %`);
  await Promise.all(names.map((name) => container.getBlockBlobClient(name).upload("x", 1)));
  const clients = names.map((name) => container.getBlobClient(name));
  const said = (answer) => answer.subResponses.map((r) => `${r.status} ${r.errorCode ?? ""}`.trim());
  const tiers = await container.getBlobBatchClient().setBlobsAccessTier([clients[0], container.getBlobClient("none"), clients[1]], "Archive");
  assert.deepEqual(said(tiers), ["200", "404 BlobNotFound", "200"]);
  assert.equal((await clients[1].getProperties()).accessTier, "Archive");
  const first = await service.getBlobBatchClient().deleteBlobs([clients[0], container.getBlobClient("none"), clients[1]]);
  assert.deepEqual(said(first), ["202", "404 BlobNotFound", "202"]);
  assert.equal(first.subResponsesSucceededCount, 2);
  const second256 = await container.getBlobBatchClient().deleteBlobs(clients);
  assert.deepEqual(said(second256), ["404 BlobNotFound", "404 BlobNotFound", ...Array(254).fill("202")]);
  await fails(second.getBlobBatchClient().deleteBlobs([second.getBlobClient("none")]), 403, "InsufficientAccountPermissions");
  const expiresOn = new Date(Date.now() + 3600_000);
  await container.getBlockBlobClient("batch/one").upload("x", 1);
  const guest = new ContainerClient(await container.generateSasUrl({ permissions: ContainerSASPermissions.parse("d"), expiresOn }), undefined, options);
  const by = await guest.getBlobBatchClient().deleteBlobs([guest.getBlobClient("batch/one").url], guest.credential);
  assert.deepEqual(said(by), ["202"]);
}

// root writes blobs of the root container by their short path, and a page of $web, and reads them at both locations.
async function root() {
  const [near, far] = [PRIMARY, SECONDARY].map((url) => new BlobServiceClient(url, credential, options));
  const short = (url) => new BlockBlobClient(`${url.replace(/\/$/, "")}/short.txt`, credential, options);
  await fails(near.getContainerClient("$logs").create(), 403, "InsufficientAccountPermissions");
  await fails(near.getContainerClient("$logs").getProperties(), 404, "ContainerNotFound");
  const made = ["$root", "$web"].map((name) => near.getContainerClient(name));
  for (const box of made) await box.create();
  const put = await short(PRIMARY).upload("x", 1);
  assert.equal((await made[0].getBlobClient("short.txt").getProperties()).etag, put.etag);
  await fails(made[0].getBlockBlobClient("dir/b").upload("x", 1), 400, "InvalidUri");
  const { etag } = await made[1].getBlockBlobClient("css/a.css").upload("a{}", 3);
  for (const end = Date.now() + ARRIVE_WAIT_MS; ; await sleep(50)) {
    const page = await far.getContainerClient("$web").getBlobClient("css/a.css").getProperties().catch(() => ({}));
    const got = await short(SECONDARY).getProperties().catch(() => ({}));
    if (page.etag === etag && got.etag === put.etag) break;
    assert.ok(Date.now() < end, "the root container did not arrive in time");
  }
  for (const at of [near, far]) {
    assert.equal((await at.getContainerClient("$root").getBlobClient("short.txt").downloadToBuffer()).toString(), "x");
    const listed = [];
    for await (const box of at.listContainers({ prefix: "$" })) listed.push(box.name);
    assert.deepEqual(listed, ["$root", "$web"]);
  }
  const expiresOn = new Date(Date.now() + 3600_000);
  const url = new URL(await made[0].generateSasUrl({ permissions: ContainerSASPermissions.parse("r"), expiresOn }));
  assert.equal((await new BlobClient(short(PRIMARY).url + url.search, undefined, options).downloadToBuffer()).toString(), "x");
  for (const box of made) await box.delete();
}

async function refused() {
  const blob = second.getBlockBlobClient("described");
  await fails(blob.upload("x", 1), 403, "InsufficientAccountPermissions");
  await fails(blob.stageBlock(Buffer.from("a").toString("base64"), "x", 1), 403, "InsufficientAccountPermissions");
  await fails(blob.setMetadata({ a: "b" }), 403, "InsufficientAccountPermissions");
  await fails(blob.delete(), 403, "InsufficientAccountPermissions");
  await fails(second.delete(), 403, "InsufficientAccountPermissions");
}

await container.create({ metadata: { of: "npm" } });
await fails(container.create(), 409, "ContainerAlreadyExists");
assert.deepEqual((await container.getProperties()).metadata, { of: "npm" });
await pieces();
await blocks();
await properties();
await lists();
await signatures();
await leases();
await snapshots();
await tags();
await tiers();
await appends();
await copies();
await batches();
await root();
await refused();
await statistics();
await container.getBlobClient("described").delete();
await fails(container.getBlobClient("described").download(), 404, "BlobNotFound");
await container.delete();
console.log("all checks passed");
