import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAgentConfig } from "../agent-config.ts";
import { HERE } from "../place.ts";
import { type Enders, enderProblem, endersOf } from "./enders.ts";
import { statusHandler } from "./server.ts";
import { requestOf, statusOptions } from "./status-fixture.ts";

const POD = { KUBERNETES_SERVICE_HOST: "10.96.0.1", INSTANCE_IP: "10.1.2.3", HOST_IP: "10.0.0.1" };

test("endersOf() trusts loopback only where a pod has it for itself", () => {
  const of = (env: Readonly<Record<string, string>>, place = HERE) =>
    endersOf({ config: parseAgentConfig(env).config, place });
  assert.equal(of(POD), "everybody");
  assert.equal(of({ ...POD, INSTANCE_IP: POD.HOST_IP }), "own account");
  assert.equal(of({ INSTANCE_IP: "10.1.2.3" }), "own account");
  const shared = { ...HERE, connect: () => Promise.reject(new Error("unused")) };
  assert.equal(of(POD, shared), "nobody");
});

test("on a machine another account can neither end the agent nor drain it", async () => {
  const acted: string[] = [];
  const as = async (enders: Enders, uid: number | undefined, path: string) => {
    const act = () => void acted.push(path);
    const handle = statusHandler(statusOptions({ enders, quit: act, drain: act }).options);
    return (await handle(requestOf({ method: "POST", path, callerAccount: async () => uid }))).status;
  };
  const own = process.getuid?.() ?? 0;
  for (const path of ["/quitquitquit", "/drain"]) {
    assert.equal(await as("own account", 12_345, path), 403);
    assert.equal(await as("own account", undefined, path), 403);
    assert.equal(await as("nobody", own, path), 403);
    assert.deepEqual(acted, []);
    for (const uid of [own, 0]) assert.equal(await as("own account", uid, path), 200);
    assert.equal(await as("everybody", 12_345, path), 200);
    await new Promise(setImmediate);
    assert.deepEqual(acted.splice(0), [path, path, path]);
  }
});

test("enderProblem() does not ask for the account where everybody may", async () => {
  assert.equal(await enderProblem("everybody", { callerAccount: () => assert.fail("asked") }), undefined);
});
