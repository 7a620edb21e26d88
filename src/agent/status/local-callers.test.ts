/** CVE-2022-39388 class: requests that only seem to come from a local program. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { serveStatus, statusOptions } from "./status-fixture.ts";

async function endable(t: TestContext) {
  const acted: string[] = [];
  const act = () => void acted.push("acted");
  const { options } = statusOptions({ quit: act, drain: act, nameTable: () => "{}" });
  const { port } = await serveStatus(t, options);
  const send = async (path: string, { headers = {}, localAddress = "127.0.0.1" } = {}) => {
    const sent = request({ host: "127.0.0.1", port, path, method: "POST", headers, localAddress, agent: false }).end();
    const [response] = await once(sent, "response");
    return { status: response.statusCode, body: await text(response) };
  };
  return { acted, send };
}

const LOCAL_PATHS = ["/quitquitquit", "/drain", "/debug/ndsz"];

test("a web page cannot end the agent, through DNS rebinding or a form", async (t) => {
  const { acted, send } = await endable(t);
  for (const path of LOCAL_PATHS) {
    for (const headers of [
      { host: "attacker.example:15020" },
      { origin: "https://attacker.example" },
      { origin: "null" },
    ])
      assert.equal((await send(path, { headers })).status, 403, path);
  }
  assert.deepEqual(acted, []);
});

test("what Envoy passes on from elsewhere cannot end the agent", async (t) => {
  const { acted, send } = await endable(t);
  for (const path of LOCAL_PATHS) {
    assert.equal((await send(path, { localAddress: "127.0.0.6" })).status, 403, path);
    assert.equal((await send(path, { headers: { "x-forwarded-proto": "http" } })).status, 403, path);
  }
  assert.deepEqual(acted, []);
});
