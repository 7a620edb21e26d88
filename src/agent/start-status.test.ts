import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { statusSocket } from "./start-status.ts";

test("statusSocket() is the port where the agent opens it itself", () => {
  assert.equal(statusSocket({ sockets: undefined }, 15020), 15020);
  assert.equal(statusSocket({ sockets: { status: undefined, dns: new Map() } }, 15020), 15020);
});

test("statusSocket() takes a socket that was opened, on the configured port only", async (t) => {
  const status = createServer().listen(0, "127.0.0.1");
  t.after(() => status.close());
  await once(status, "listening");
  const { port } = status.address() as AddressInfo;
  const place = { sockets: { status, dns: new Map() } };
  assert.equal(statusSocket(place, port), status);
  assert.throws(() => statusSocket(place, 15020), {
    code: "WORKLOAD_FILE_INVALID",
    message: `statusPort must be that of the ProxyConfig, 15020, but port ${port} was opened`,
  });
});
