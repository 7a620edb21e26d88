import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import test from "node:test";
import { parsePublishEntry } from "../mesh/publish-entry.ts";
import { openHostPorts } from "./host-ports.ts";
import type { WantedPort } from "./published.ts";

function publishing(...entries: readonly string[]): readonly WantedPort[] {
  const publish = entries.map(parsePublishEntry).filter((entry) => typeof entry !== "string");
  return publish.map((entry) => ({ member: "gw.istio-system", publish: entry }));
}

test("openHostPorts() opens the ports and tells which ones it got", async () => {
  const [open] = await openHostPorts(publishing("127.0.0.1:0:8080"), false);
  assert.match(open?.port.address ?? "", /^127\.0\.0\.1:[1-9]\d*$/);
  assert.deepEqual([open?.port.member, open?.port.port], ["gw.istio-system", 8080]);
  open?.server.close();
});

test("openHostPorts() names member and entry of a port that is in use, and keeps none open", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const address = taken.address();
  assert.ok(address !== null && typeof address === "object");
  const entry = `127.0.0.1:${address.port}:80`;
  await assert.rejects(openHostPorts(publishing("127.0.0.1:0:81", entry), false), {
    code: "PORT_UNAVAILABLE",
    message: `Cannot publish "${entry}" of "gw": port ${address.port} is in use by another process; stop that process, change the entry, or use --free-ports`,
  });
  const [free] = await openHostPorts(publishing(entry), true);
  assert.notEqual(free?.port.address, `127.0.0.1:${address.port}`);
  free?.server.close();
  taken.close();
});
