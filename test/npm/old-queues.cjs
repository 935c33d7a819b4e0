// Drives antipode dev with the queue half of the last release of azure-storage, which speaks
// as clients of before 2020 do: its own text encoders, an existence test by HEAD, and reads
// at -secondary by a location mode.
// Exits 0 and says "all checks passed", or fails with the first broken promise.
const assert = require("node:assert/strict");
const { setTimeout: sleep } = require("node:timers/promises");
const storage = require("azure-storage");

const { PRIMARY, SECONDARY, ACCOUNT, KEY } = process.env;
const QUEUE = "old-queue";
const ARRIVE_WAIT_MS = 30_000;
const { LocationMode } = storage.StorageUtilities;
const there = { locationMode: LocationMode.SECONDARY_ONLY };
const hosts = { primaryHost: PRIMARY, secondaryHost: SECONDARY };
const primary = storage.createQueueService(ACCOUNT, KEY, hosts);
const second = storage.createQueueService(ACCOUNT, KEY, SECONDARY);

// call makes a promise of a call of the client at the primary, callAt of any client.
const call = (name, ...args) => callAt(primary, name, ...args);

function callAt(service, name, ...args) {
  return new Promise((resolve, reject) =>
    service[name](...args, (err, result) => (err ? reject(err) : resolve(result))));
}

async function fails(promise, status, code) {
  await assert.rejects(promise, (err) => {
    assert.equal(`${err.statusCode} ${err.code}`, `${status} ${code}`, `${err}`);
    return true;
  });
}

async function queues() {
  assert.equal((await call("createQueueIfNotExists", QUEUE, { metadata: { of: "old" } })).created, true);
  assert.equal((await call("createQueueIfNotExists", QUEUE)).created, false);
  await call("createQueue", QUEUE, { metadata: { of: "old" } });
  await fails(call("createQueue", QUEUE), 409, "QueueAlreadyExists");
  assert.equal((await call("doesQueueExist", QUEUE)).exists, true);
  assert.equal((await call("doesQueueExist", "old-none")).exists, false);
  await call("setQueueMetadata", QUEUE, { changed: "yes" });
  const got = await call("getQueueMetadata", QUEUE);
  assert.deepEqual(got.metadata, { changed: "yes" });
  assert.equal(got.approximateMessageCount, 0);
  await call("createQueue", "old-queue-2");
  const names = [];
  for (let token = null; ;) {
    const page = await call("listQueuesSegmentedWithPrefix", "old-queue", token, { maxResults: 1, include: "metadata" });
    names.push(...page.entries.map((q) => [q.name, q.metadata]));
    if (!page.continuationToken) break;
    token = JSON.parse(JSON.stringify(page.continuationToken));
  }
  assert.deepEqual(names.map((n) => n[0]), [QUEUE, "old-queue-2"]);
  assert.deepEqual(names[0][1], { changed: "yes" });
  const policy = { one: { Permissions: "raup", Start: new Date("2024-01-02T03:04:05Z"), Expiry: new Date("2034-01-02T03:04:05Z") } };
  await call("setQueueAcl", QUEUE, policy);
  const acl = await call("getQueueAcl", QUEUE);
  assert.equal(acl.signedIdentifiers.one.Permissions, "raup");
  assert.equal(new Date(acl.signedIdentifiers.one.Start).getTime(), policy.one.Start.getTime());
  await call("setQueueAcl", QUEUE, {});
  assert.deepEqual((await call("getQueueAcl", QUEUE)).signedIdentifiers, {});
}

async function messages() {
  // The default encoder writes text as XML, the others as Base64: the server keeps what comes.
  const { TextXmlQueueMessageEncoder, TextBase64QueueMessageEncoder, BinaryBase64QueueMessageEncoder } = storage.QueueMessageEncoder;
  const text = "Hällo <&> ' \" 😀";
  for (const [encoder, content] of [
    [new TextXmlQueueMessageEncoder(), text], [new TextBase64QueueMessageEncoder(), text], [new BinaryBase64QueueMessageEncoder(), Buffer.from([0, 1, 255])],
  ]) {
    primary.messageEncoder = encoder;
    const put = await call("createMessage", QUEUE, content, { messageTimeToLive: 3600 });
    const peeked = await call("peekMessage", QUEUE);
    assert.deepEqual(peeked.messageText, content);
    const got = await call("getMessage", QUEUE, { visibilityTimeout: 60 });
    assert.deepEqual([got.messageId, got.messageText, got.dequeueCount], [put.messageId, content, 1]);
    await fails(call("deleteMessage", QUEUE, put.messageId, put.popReceipt), 404, "MessageNotFound");
    const updated = await call("updateMessage", QUEUE, got.messageId, got.popReceipt, 0, { messageText: content });
    assert.deepEqual((await call("peekMessages", QUEUE, { numOfMessages: 32 })).map((m) => m.messageText), [content]);
    await call("deleteMessage", QUEUE, got.messageId, updated.popReceipt);
    assert.deepEqual(await call("getMessages", QUEUE, { numOfMessages: 32 }), []);
  }
  primary.messageEncoder = new TextXmlQueueMessageEncoder();
  await call("createMessage", QUEUE, "x");
  await call("clearMessages", QUEUE);
  assert.equal((await call("getQueueMetadata", QUEUE)).approximateMessageCount, 0);
  await fails(call("createMessage", QUEUE, "x".repeat(65537)), 413, "RequestBodyTooLarge");
  await fails(call("createMessage", "old-none", "x"), 404, "QueueNotFound");
}

async function secondary() {
  const put = await call("createMessage", QUEUE, "everywhere");
  for (const end = Date.now() + ARRIVE_WAIT_MS; ;) {
    const seen = await call("peekMessages", QUEUE, there).catch(() => []);
    if (seen.length === 1 && seen[0].messageId === put.messageId) break;
    assert.ok(Date.now() < end, "the message did not arrive in time");
    await sleep(50);
  }
  assert.deepEqual((await call("getQueueMetadata", QUEUE, there)).metadata, { changed: "yes" });
  for (const [name, ...args] of [
    ["createMessage", QUEUE, "x"], ["getMessages", QUEUE], ["clearMessages", QUEUE], ["setQueueMetadata", QUEUE, {}],
    ["deleteMessage", QUEUE, put.messageId, put.popReceipt], ["deleteQueue", QUEUE], ["createQueue", "old-refused"],
  ]) await fails(callAt(second, name, ...args), 403, "InsufficientAccountPermissions");
  // A client with no primary left peeks on, since nothing listens on port 1.
  const cut = storage.createQueueService(ACCOUNT, KEY, { ...hosts, primaryHost: `http://127.0.0.1:1/${ACCOUNT}` })
    .withFilter(new storage.LinearRetryPolicyFilter(2, 10));
  cut.messageEncoder = primary.messageEncoder;
  const seen = await callAt(cut, "peekMessages", QUEUE, { locationMode: LocationMode.PRIMARY_THEN_SECONDARY });
  assert.equal(seen[0].messageText, "everywhere");
  const { GeoReplication } = await call("getServiceStats", there);
  assert.equal(GeoReplication.Status, "live");
}

(async () => {
  await queues();
  await messages();
  await secondary();
  assert.equal(await call("deleteQueueIfExists", QUEUE), true);
  assert.equal(await call("deleteQueueIfExists", QUEUE), false);
  console.log("all checks passed");
})().catch((err) => {
  console.error(err);
  process.exit(1);
});
