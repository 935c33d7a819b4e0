// Drives antipode dev with the official JavaScript queue client: every operation at the
// primary, a peek of the same messages at -secondary, and the refusals there.
// Exits 0 and says "all checks passed", or fails with the first broken promise.
import assert from "node:assert/strict";
import dns from "node:dns";
import { setTimeout as sleep } from "node:timers/promises";

// Not every resolver knows that *.localhost is this machine.
const lookup = dns.lookup;
dns.lookup = (host, options, done) =>
  lookup(host.endsWith(".localhost") ? "127.0.0.1" : host, options, done);

const { QueueClient, QueueSASPermissions, QueueServiceClient, StorageSharedKeyCredential } = await import("@azure/storage-queue");

const { PRIMARY, SECONDARY, ACCOUNT, KEY } = process.env;
const QUEUE = "npm-queue";
const ARRIVE_WAIT_MS = 30_000;
const credential = new StorageSharedKeyCredential(ACCOUNT, KEY);
const options = { retryOptions: { maxTries: 1 } };
const service = new QueueServiceClient(PRIMARY, credential, options);
const secondService = new QueueServiceClient(SECONDARY, credential, options);
const queue = service.getQueueClient(QUEUE);
const second = secondService.getQueueClient(QUEUE);

// fails requires that a call is refused with this status and code.
async function fails(call, status, code) {
  await assert.rejects(call, (err) => {
    assert.equal(`${err.statusCode} ${err.code ?? err.details?.errorCode}`, `${status} ${code}`, `${err}`);
    return true;
  });
}

// eventually repeats check until it returns something other than undefined.
async function eventually(what, check) {
  for (const end = Date.now() + ARRIVE_WAIT_MS; ;) {
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

async function queues() {
  assert.equal((await queue.createIfNotExists({ metadata: { color: "red" } })).succeeded, true);
  assert.equal((await queue.createIfNotExists({ metadata: { color: "blue" } })).succeeded, false);
  await queue.create({ metadata: { color: "red" } });
  await fails(queue.create(), 409, "QueueAlreadyExists");
  assert.equal(await queue.exists(), true);
  assert.equal(await service.getQueueClient("npm-none").exists(), false);
  await queue.setMetadata({ size: "1" });
  const got = await queue.getProperties();
  assert.deepEqual(got.metadata, { size: "1" });
  assert.equal(got.approximateMessagesCount, 0);
  for (const name of ["npm-list-a", "npm-list-b", "npm-list-c"]) await service.createQueue(name, { metadata: { of: name } });
  const names = [];
  for await (const page of service.listQueues({ prefix: "npm-list-", includeMetadata: true }).byPage({ maxPageSize: 2 })) {
    for (const q of page.queueItems) {
      names.push(q.name);
      assert.deepEqual(q.metadata, { of: q.name });
    }
  }
  assert.deepEqual(names, ["npm-list-a", "npm-list-b", "npm-list-c"]);
  const start = new Date("2024-01-02T03:04:05.120Z"), expiresOn = new Date("2034-01-02T03:04:05Z");
  await queue.setAccessPolicy([{ id: "one", accessPolicy: { startsOn: start, expiresOn, permissions: "raup" } }]);
  const { signedIdentifiers } = await queue.getAccessPolicy();
  assert.deepEqual(signedIdentifiers, [{ id: "one", accessPolicy: { startsOn: start, expiresOn, permissions: "raup" } }]);
  await queue.setAccessPolicy();
  assert.deepEqual((await queue.getAccessPolicy()).signedIdentifiers, []);
}

async function messages() {
  // The client drops line feeds before it sends: the Go client sends them.
  const texts = ["", " <a & b> \t'\"; ]]> søn 😀 ", Buffer.from("binary \0").toString("base64"), "x".repeat(65536)];
  for (const text of texts) await queue.sendMessage(text);
  await fails(queue.sendMessage("x".repeat(65537)), 413, "RequestBodyTooLarge");
  await fails(queue.sendMessage("x", { messageTimeToLive: 10, visibilityTimeout: 10 }), 400, "InvalidQueryParameterValue");
  assert.equal((await queue.getProperties()).approximateMessagesCount, 4);
  const peeked = await queue.peekMessages({ numberOfMessages: 32 });
  assert.deepEqual(peeked.peekedMessageItems.map((m) => m.messageText), texts);
  const got = (await queue.receiveMessages({ numberOfMessages: 32, visibilityTimeout: 60 })).receivedMessageItems;
  assert.deepEqual(got.map((m) => [m.messageText, m.dequeueCount]), texts.map((t) => [t, 1]));
  assert.deepEqual((await queue.receiveMessages()).receivedMessageItems, []);

  const [first, next] = got;
  const updated = await queue.updateMessage(first.messageId, first.popReceipt, "changed & escaped", 0);
  await fails(queue.deleteMessage(first.messageId, first.popReceipt), 404, "MessageNotFound");
  const again = (await queue.receiveMessages()).receivedMessageItems[0];
  assert.deepEqual([again.messageId, again.messageText, again.dequeueCount], [first.messageId, "changed & escaped", 2]);
  await fails(queue.updateMessage(first.messageId, updated.popReceipt, "late", 0), 404, "MessageNotFound");
  await queue.deleteMessage(again.messageId, again.popReceipt);
  await queue.updateMessage(next.messageId, next.popReceipt, undefined, 0);
  assert.equal((await queue.peekMessages()).peekedMessageItems[0].messageText, texts[1]);
  await fails(queue.deleteMessage(again.messageId, "no receipt"), 400, "InvalidQueryParameterValue");

  const kept = await queue.sendMessage("never", { messageTimeToLive: -1, visibilityTimeout: 600 });
  assert.equal(kept.expiresOn.getUTCFullYear(), 9999);
  await queue.deleteMessage(kept.messageId, kept.popReceipt);
  await queue.clearMessages();
  assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
}

// A client without a key does what its signature permits, at the primary and at -secondary.
async function signatures() {
  const expiresOn = new Date(Date.now() + 3600_000);
  const url = queue.generateSasUrl({ permissions: QueueSASPermissions.parse("rap"), expiresOn });
  const guest = new QueueClient(url, undefined, options);
  await guest.sendMessage("guest");
  const there = new QueueClient(url.replace(queue.url, second.url), undefined, options);
  await eventually("message at -secondary", async () => (await there.peekMessages()).peekedMessageItems[0]);
  const { messageId, popReceipt } = (await guest.receiveMessages()).receivedMessageItems[0];
  await fails(guest.updateMessage(messageId, popReceipt, "x"), 403, "AuthorizationPermissionMismatch");
  await fails(guest.clearMessages(), 403, "AuthorizationFailure");
  await guest.deleteMessage(messageId, popReceipt);
}

async function secondary() {
  const sent = await queue.sendMessage("geo & <text>");
  const there = await eventually("message at -secondary", async () => (await second.peekMessages()).peekedMessageItems[0]);
  assert.deepEqual([there.messageId, there.messageText, there.dequeueCount], [sent.messageId, "geo & <text>", 0]);
  assert.deepEqual((await second.getProperties()).metadata, { size: "1" });
  await fails(second.receiveMessages(), 403, "InsufficientAccountPermissions");
  await fails(second.sendMessage("x"), 403, "InsufficientAccountPermissions");
  await fails(second.deleteMessage(sent.messageId, sent.popReceipt), 403, "InsufficientAccountPermissions");
  await fails(second.clearMessages(), 403, "InsufficientAccountPermissions");
  await fails(second.setMetadata({}), 403, "InsufficientAccountPermissions");
  await fails(second.create(), 403, "InsufficientAccountPermissions");
  await queue.deleteMessage(sent.messageId, sent.popReceipt);
  await eventually("deletion at -secondary", async () => ((await second.peekMessages()).peekedMessageItems.length === 0 ? true : undefined));
  const { geoReplication } = await secondService.getStatistics();
  assert.equal(geoReplication.status, "live");
}

await queues();
await messages();
await signatures();
await secondary();
assert.equal((await queue.deleteIfExists()).succeeded, true);
assert.equal((await queue.deleteIfExists()).succeeded, false);
await fails(queue.sendMessage("x"), 404, "QueueNotFound");
console.log("all checks passed");
