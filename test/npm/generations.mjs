// Every generation of JavaScript clients on one table: STEP=write has each write an entity of all
// eight types, STEP=read has each read those of all, ROWS in number. Exits 0 and says "all checks
// passed", or fails with the first difference.
import assert from "node:assert/strict";
import dns from "node:dns";
import http from "node:http";
import { createRequire } from "node:module";
import url from "node:url";

// Not every resolver knows that *.localhost is this machine.
const lookup = dns.lookup;
dns.lookup = (host, options, done) =>
  lookup(host.endsWith(".localhost") ? "127.0.0.1" : host, options, done);
// As in tables-2013.cjs.
http.globalAgent = new http.Agent({ keepAlive: false });
const format = url.format;
url.format = (parts) => {
  const [pathname, ...search] = (parts.pathname ?? "").split("?");
  return format(search.length ? { ...parts, pathname, search: search.join("?") } : parts);
};

const require = createRequire(import.meta.url);
const azure = require("azure");
const { AzureNamedKeyCredential, TableClient } = await import("@azure/data-tables");

const { PRIMARY, SECONDARY, ACCOUNT, KEY, STEP, ROWS, TABLE } = process.env;

// value is what every client writes, and has to read: the text has what XML and JSON escape.
const value = {
  text: " søn <&\"'> \u4e2d\t", yes: true, small: -7, big: "9007199254740993", half: 0.5, whole: 3,
  when: "2009-04-30T20:45:13.500Z", id: "c9da6455-213d-42c9-9a79-3e9149a57833", raw: "AAH/",
};

function called(service, name, ...args) {
  return new Promise((resolve, reject) => service[name](...args, (err, result) => (err ? reject(err) : resolve(result))));
}

// atom is azure 0.6.11, whose Int64 is a number of JavaScript.
function atom() {
  const service = azure.createTableService(ACCOUNT, KEY, PRIMARY);
  const typed = (v, type) => ({ _: v, $: { type } });
  return {
    write: (rk) => called(service, "insertEntity", TABLE, {
      PartitionKey: "p", RowKey: rk, Text: value.text, Yes: typed(true, "Edm.Boolean"), Small: typed(-7, "Edm.Int32"),
      Big: typed(value.big, "Edm.Int64"), Half: typed(0.5, "Edm.Double"), Whole: typed(3, "Edm.Double"), When: typed(value.when, "Edm.DateTime"),
      Guid: typed(value.id, "Edm.Guid"), Raw: typed(value.raw, "Edm.Binary"),
    }),
    read: async (rk) => {
      const e = await called(service, "queryEntity", TABLE, "p", rk);
      assert.equal(e.Big, parseInt(value.big, 10));
      return {
        text: e.Text, yes: e.Yes, small: e.Small, big: value.big, half: e.Half, whole: e.Whole,
        when: e.When.toISOString(), id: e.Guid, raw: e.Raw,
      };
    },
    count: async () => (await called(service, "queryEntities", azure.TableQuery.select().from(TABLE))).length,
  };
}

// old is azure-storage 0.4.5 or 2.10.7.
function old(name) {
  const storage = require(name);
  const service = storage.createTableService(ACCOUNT, KEY, { primaryHost: PRIMARY, secondaryHost: SECONDARY });
  const gen = storage.TableUtilities.entityGenerator;
  const text = (v) => (Buffer.isBuffer(v) ? v.toString("base64") : v);
  return {
    write: (rk) => called(service, "insertEntity", TABLE, {
      PartitionKey: gen.String("p"), RowKey: gen.String(rk), Text: gen.String(value.text), Yes: gen.Boolean(true), Small: gen.Int32(-7),
      Big: gen.Int64(value.big), Half: gen.Double(0.5), Whole: gen.Double(3), When: gen.DateTime(new Date(value.when)),
      Guid: gen.Guid(value.id), Raw: gen.Binary(Buffer.from(value.raw, "base64")),
    }),
    read: async (rk) => {
      const e = await called(service, "retrieveEntity", TABLE, "p", rk);
      return {
        text: e.Text._, yes: e.Yes._, small: e.Small._, big: e.Big._, half: e.Half._, whole: e.Whole._,
        when: e.When._.toISOString(), id: e.Guid._, raw: text(e.Raw._),
      };
    },
    count: async () => (await called(service, "queryEntities", TABLE, new storage.TableQuery(), null)).entries.length,
  };
}

// newest is @azure/data-tables.
function newest() {
  const table = new TableClient(PRIMARY, TABLE, new AzureNamedKeyCredential(ACCOUNT, KEY), {
    allowInsecureConnection: true, retryOptions: { maxRetries: 0 },
  });
  return {
    write: (rk) => table.createEntity({
      partitionKey: "p", rowKey: rk, Text: value.text, Yes: true, Small: { type: "Int32", value: "-7" }, Big: BigInt(value.big), Half: 0.5,
      Whole: { type: "Double", value: "3" }, When: new Date(value.when), Guid: { type: "Guid", value: value.id }, Raw: Buffer.from(value.raw, "base64"),
    }),
    read: async (rk) => {
      const e = await table.getEntity("p", rk);
      return {
        text: e.Text, yes: e.Yes, small: e.Small, big: String(e.Big), half: e.Half, whole: e.Whole,
        when: e.When.toISOString(), id: e.Guid.value, raw: Buffer.from(e.Raw).toString("base64"),
      };
    },
    count: async () => {
      let n = 0;
      for await (const _ of table.listEntities()) n++;
      return n;
    },
  };
}

// Their names are row keys: azure signs a key as it stands, and so has no blanks in one.
const clients = {
  "azure-0.6.11": atom(), "azure-storage-0.4.5": old("azure-storage-0.4.5"),
  "azure-storage-2.10.7": old("azure-storage"), "data-tables": newest(),
};

if (STEP === "write") {
  for (const [name, client] of Object.entries(clients)) await client.write(name);
} else {
  for (const [reader, client] of Object.entries(clients)) {
    for (const writer of [...Object.keys(clients), "aztables"]) {
      // azure-storage 0.4.5 writes a whole Double as a JSON string, which is a String.
      const want = writer === "azure-storage-0.4.5" ? { ...value, whole: "3.0" } : value;
      assert.deepEqual(await client.read(writer), want, `${reader} reads what ${writer} wrote`);
    }
    assert.equal(await client.count(), Number(ROWS), reader);
  }
}
console.log("all checks passed");
