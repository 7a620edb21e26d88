/** `agents: shared`: one agent process for all proxies, and nobody notices. */
import assert from "node:assert/strict";
import { readdir, readFile, readlink } from "node:fs/promises";
import test from "node:test";
import { type MeshFolder, meshFolder, tracesOf, WEB_SPEC } from "../../../test/support/mesh-folder.ts";
import { meshUnavailable } from "../../../test/support/mesh-run.ts";
import { meshId } from "../plan/names.ts";

const skip = meshUnavailable();
/** CAP_SYS_MODULE, of which no agent has need. */
const LOADING_MODULES = 1n << 16n;
const SPEC = `  agents: shared${WEB_SPEC}  - {name: caller, labels: {app: caller}, command: [sleep, infinity]}\n`;

async function answer({ running }: MeshFolder): Promise<string> {
  return (await running.curl("caller", "http://web:8000/")).body;
}

async function agentOf({ running }: MeshFolder): Promise<number> {
  return (await running.member("web")).proxy?.pid ?? assert.fail("no agent");
}

async function childrenOf(pid: number): Promise<readonly number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  return children.split(" ").filter(Boolean).map(Number);
}

async function untilReady({ running }: MeshFolder): Promise<void> {
  await running.until(({ members }) => members.every(({ ready }) => ready));
}

test("one agent serves all proxies of a mesh", { skip }, async (t) => {
  await using folder = await meshFolder(SPEC);
  const started = await folder.up();
  assert.equal(started.code, 0, started.stderr);
  assert.equal(await answer(folder), "web web");
  assert.equal((await folder.running.member("caller")).proxy?.pid, await agentOf(folder));
  assert.match(await folder.running.logs("web", "proxy"), /Envoy proxy is ready/);

  await t.test("Envoys have places of their own and no rights, the agent only those that it needs", async () => {
    const agent = await agentOf(folder);
    const envoys = (await Promise.all((await childrenOf(agent)).map(childrenOf))).flat();
    assert.equal(envoys.length, 2);
    for (const pid of envoys) {
      assert.match(await readFile(`/proc/${pid}/status`, "utf8"), /^Uid:\t1337\t.*^CapEff:\t0+\n.*^NoNewPrivs:\t1$/ms);
    }
    const namespaces = await Promise.all([agent, ...envoys].map((pid) => readlink(`/proc/${pid}/ns/pid`)));
    assert.equal(new Set(namespaces).size, 3);
    const [, rights = "0"] = /^CapEff:\t(\w+)$/m.exec(await readFile(`/proc/${agent}/status`, "utf8")) ?? [];
    assert.equal(BigInt(`0x${rights}`) & LOADING_MODULES, 0n);
  });

  await t.test("a workload restarts alone", async () => {
    const agent = await agentOf(folder);
    const { code, stderr } = await folder.mizzen("restart", "web");
    assert.equal(code, 0, stderr);
    assert.equal(await answer(folder), "web web");
    assert.equal(await agentOf(folder), agent);
    assert.equal((await folder.running.member("caller")).proxy?.restarts, 0);
  });

  await t.test("replicas come and go", async () => {
    assert.equal((await folder.mizzen("scale", "web", "2")).code, 0);
    assert.match(await answer(folder), /^web web/);
    assert.equal((await folder.mizzen("scale", "web", "1")).code, 0);
    assert.equal(await answer(folder), "web web");
  });

  await t.test("a guest joins and leaves", async () => {
    const { code, stdout, stderr } = await folder.mizzen("run", "--", "curl", "-sS", "http://web:8000/");
    assert.equal(code, 0, stderr);
    assert.equal(stdout, "web web");
    const served = (await readdir(`${folder.state}/agents`)).filter((name) => name.endsWith(".json"));
    assert.deepEqual(served, ["caller.default.json", "web.default.json"]);
  });

  await t.test("an Envoy that is killed comes back, and the others stay", async () => {
    await folder.running.kill({ member: "web", process: "envoy" });
    await folder.running.until(({ members }) => members.some(({ proxy }) => proxy?.restarts === 1));
    await untilReady(folder);
    assert.equal(await answer(folder), "web web");
  });

  await t.test("the agent that is killed comes back with all of its Envoys", async () => {
    const killed = await folder.running.kill({ member: "web", process: "agent" });
    await folder.running.until(({ members }) =>
      members.every(({ ready, proxy }) => ready && (proxy === undefined || (proxy.pid ?? killed) !== killed)),
    );
    assert.equal(await answer(folder), "web web");
  });

  await t.test("a change of the mode makes proxies anew, in either direction", async () => {
    const own = await folder.up("--agents", "own");
    assert.equal(own.code, 0, own.stderr);
    assert.notEqual((await folder.running.member("caller")).proxy?.pid, await agentOf(folder));
    assert.equal(await answer(folder), "web web");
    assert.equal((await folder.up()).code, 0);
    assert.equal((await folder.running.member("caller")).proxy?.pid, await agentOf(folder));
    assert.equal(await answer(folder), "web web");
  });

  await t.test("down leaves nothing, also after the runner was killed", async () => {
    const runner = await folder.running.kill("runner");
    await assert.doesNotReject(readFile(`${folder.state}/status.json`), String(runner));
    assert.equal((await folder.running.down()).code, 0);
    assert.deepEqual(await tracesOf(meshId(folder.state), folder.state), []);
  });
});

test("an agent that cannot serve anybody is told with its reason", { skip }, async () => {
  await using folder = await meshFolder(
    SPEC.replace(
      "    ports: [80]",
      '    ports: [80]\n    annotations: {proxy.istio.io/config: "binaryPath: /bin/false"}',
    ),
  );
  const failed = await folder.up();
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /proxy of "web" ended: .*, 3 times in a row/);
});
