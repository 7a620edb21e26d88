import assert from "node:assert/strict";
import test from "node:test";
import { isInSync } from "./in-sync.ts";

const OBJECTS = '[{"kind":"WorkloadEntry","spec":{"address":"10.244.0.11"}}]';
const SYNCED = { proxy: "web.default", cluster_sent: "1", cluster_acked: "1", endpoint_sent: "2", endpoint_acked: "2" };

const SETTLED = '{"settled":true}';

function inSync(proxies: unknown, mentioned: readonly string[], count = 1): boolean {
  const wanted = { mentioned, forgotten: ["10.244.0.99"], proxies: count };
  return isInSync({ objects: OBJECTS, settled: SETTLED, proxies: JSON.stringify(proxies) }, wanted);
}

test("isInSync() wants every member known, every proxy connected, and everything acknowledged", () => {
  assert.ok(inSync([SYNCED], ["10.244.0.11"]));
  assert.ok(!inSync([SYNCED], ["10.244.0.11", "10.244.0.1"]), "a member is missing");
  assert.ok(!inSync([SYNCED], ["10.244.0.11"], 2), "a proxy is missing");
  assert.ok(!inSync([{ ...SYNCED, endpoint_sent: "3" }], []), "not acknowledged");
  assert.ok(!inSync([{ proxy: "web.default", cluster_sent: "1" }], []), "never acknowledged");
  assert.ok(!inSync({ error: "401" }, []), "not a list of proxies");
});

test("isInSync() waits until what was removed is forgotten", () => {
  const pages = { objects: OBJECTS, settled: SETTLED, proxies: JSON.stringify([SYNCED]) };
  assert.ok(!isInSync(pages, { mentioned: [], forgotten: ["10.244.0.11"], proxies: 1 }));
});

test("isInSync() waits until a change that is known was sent", () => {
  const pages = { objects: OBJECTS, settled: '{"settled":false}', proxies: JSON.stringify([SYNCED]) };
  const wanted = { mentioned: [], forgotten: [], proxies: 1 };
  assert.ok(!isInSync(pages, wanted));
  assert.ok(isInSync({ ...pages, settled: SETTLED }, wanted));
});
