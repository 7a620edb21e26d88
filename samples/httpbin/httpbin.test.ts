import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { createHttpbin } from "./httpbin.ts";

const server = createHttpbin("httpbin-1");
let base = "";

before(async () => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

after(() => {
  server.close();
  server.closeAllConnections();
});

async function json(path: string, init: RequestInit = {}): Promise<Record<string, unknown>> {
  const response = await fetch(base + path, init);
  return { status: response.status, ...((await response.json()) as object) };
}

test("/headers has names in canonical case and all values", async () => {
  const headers = { "x-forwarded-client-cert": "By=a;URI=b", "x-b3-traceid": "1", "x-many": "1, 2" };
  const answer = await json("/headers", { headers });
  const seen = answer.headers as Record<string, string>;
  assert.equal(seen["X-Forwarded-Client-Cert"], "By=a;URI=b");
  assert.equal(seen["X-B3-Traceid"], "1");
  assert.equal(seen["X-Many"], "1, 2");
  assert.equal(seen.Host, new URL(base).host);
});

test("/get tells arguments, origin and address", async () => {
  const answer = await json("/get?a=1&b=2&b=3", {
    headers: { "x-forwarded-proto": "https", "x-forwarded-for": "9.9.9.9" },
  });
  assert.deepEqual(answer.args, { a: "1", b: ["2", "3"] });
  assert.equal(answer.origin, "9.9.9.9");
  assert.equal(answer.url, `${base.replace("http:", "https:")}/get?a=1&b=2&b=3`);
});

test("/anything tells method and body as text, JSON or form", async () => {
  const posted = await json("/anything/at/all", { method: "POST", body: '{"a": 1}' });
  assert.deepEqual([posted.method, posted.data, posted.json], ["POST", '{"a": 1}', { a: 1 }]);
  const form = await json("/anything", { method: "PUT", body: new URLSearchParams({ a: "1" }) });
  assert.deepEqual([form.method, form.data, form.form], ["PUT", "", { a: "1" }]);
});

test("/anything refuses a body without end", async () => {
  const answer = await json("/anything", { method: "POST", body: "x".repeat(1_048_577) });
  assert.deepEqual(answer, { status: 413, error: "the body is longer than 1048576 bytes" });
});

test("/hostname is the name of the pod", async () => {
  assert.equal(await (await fetch(`${base}/hostname`)).text(), '"httpbin-1"');
});

test("/ip is the caller's address", async () => {
  assert.equal((await json("/ip")).origin, "127.0.0.1");
});

test("/status answers with any status", async () => {
  for (const code of [200, 204, 418, 503]) assert.equal((await fetch(`${base}/status/${code}`)).status, code);
});

test("/delay answers later", async () => {
  const start = performance.now();
  assert.equal((await json("/delay/0.05")).status, 200);
  assert.ok(performance.now() - start >= 45);
});

test("/bytes has as many as asked for, up to a limit", async () => {
  const size = async (path: string) => (await (await fetch(base + path)).arrayBuffer()).byteLength;
  assert.deepEqual(
    [await size("/bytes/0"), await size("/bytes/1000"), await size("/bytes/999999")],
    [0, 1000, 102_400],
  );
});

test("/stream has a JSON object per line", async () => {
  const lines = (await (await fetch(`${base}/stream/3`)).text()).trimEnd().split("\n");
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).id),
    [0, 1, 2],
  );
});

test("arguments and endpoints that make no sense are answered with a sentence", async () => {
  for (const path of ["/status/99", "/status/x", "/status", "/delay/x", "/bytes/-1", "/stream/1.5"]) {
    const answer = await json(path);
    assert.deepEqual([path, answer.status, typeof answer.error], [path, 400, "string"]);
  }
  assert.equal((await json("/__proto__")).status, 404);
  assert.equal((await json("/")).status, 404);
});
