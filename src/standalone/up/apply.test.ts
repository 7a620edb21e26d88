/** What `up` and the other commands do to a mesh that is up: only what differs is touched. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { eventually } from "../../../test/support/fake-control-plane.ts";
import { type MeshFolder, meshFolder, WEB_SPEC } from "../../../test/support/mesh-folder.ts";
import { meshUnavailable, mizzen } from "../../../test/support/mesh-run.ts";
import { connectToMesh } from "../control/ask.ts";
import { NOBODY } from "../plan/enter.ts";

const skip = meshUnavailable();
const WEB = WEB_SPEC.slice(0, WEB_SPEC.indexOf("  - {name: plain"));
const PLAIN = "  - {name: plain, inject: false, command: [sleep, infinity]}\n";

/** Which process each part of each member is. */
async function pids({ running }: MeshFolder): Promise<Record<string, number | undefined>> {
  const { members } = await running.status();
  return Object.fromEntries(
    members.flatMap(({ name, app, proxy }) => [
      [`${name} app`, app?.pid],
      [`${name} proxy`, proxy?.pid],
    ]),
  );
}

test("up of a changed folder touches only what differs", { skip }, async (t) => {
  await using folder = await meshFolder(WEB + PLAIN);
  const started = await folder.up();
  assert.equal(started.code, 0, started.stderr);
  const first = await pids(folder);

  await t.test("nothing changed: nothing to do", async () => {
    const again = await folder.up();
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stderr, /^mesh ".*" is up and as it should be: nothing to do$/m);
    assert.deepEqual(await pids(folder), first);
  });

  await t.test("another variable: this app alone, in less than two seconds", async () => {
    const changed = WEB.replace("ports:", "env: {GREETING: hello}\n    ports:");
    await folder.write(changed + PLAIN);
    const begun = Date.now();
    const result = await folder.up();
    assert.equal(result.code, 0, result.stderr);
    t.diagnostic(`up of one changed workload: ${Date.now() - begun} ms`);
    assert.match(result.stderr, /web restarted$/m);
    const after = await pids(folder);
    assert.notEqual(after["web app"], first["web app"]);
    assert.deepEqual({ ...after, "web app": 0 }, { ...first, "web app": 0 });
    assert.equal((await folder.running.curl("plain", "http://web:8000/")).body, "web web hello");
  });

  await t.test("another label: the member is made anew at the same address", async () => {
    await folder.write(WEB.replace("{app: web}", "{app: web, version: v2}") + PLAIN);
    const result = await folder.up();
    assert.match(result.stderr, /web made anew$/m);
    const after = await pids(folder);
    assert.notEqual(after["web proxy"], first["web proxy"]);
    assert.equal(after["plain app"], first["plain app"]);
    assert.equal(after["istiod app"], first["istiod app"]);
    assert.equal((await folder.running.member("web")).address, "10.244.0.10");
    assert.equal((await folder.running.curl("plain", "http://web:8000/")).body, "web web");
  });

  await t.test("another mesh config reaches the proxies without a restart", async () => {
    const before = await pids(folder);
    const spec = WEB.replace("{app: web}", "{app: web, version: v2}") + PLAIN;
    await folder.write(`  meshConfig: {accessLogFile: /dev/stdout}\n${spec}`);
    const result = await folder.up();
    assert.match(result.stderr, /mesh config changed$/m);
    assert.deepEqual(await pids(folder), before);
    for (let tries = 0; !(await folder.running.logs("web", "proxy")).includes('"GET /logged '); tries++) {
      assert.ok(tries < 300, "the access log is on");
      await folder.running.curl("plain", "http://web:8000/logged");
    }
  });

  await t.test("a workload more, and one less", async () => {
    const before = await pids(folder);
    const more = "  - {name: late, labels: {app: late}, command: [node, web.cjs], ports: [80]}\n";
    await folder.add("late.yaml", LATE_SERVICE);
    await folder.write(WEB + PLAIN + more);
    assert.equal((await folder.up()).code, 0);
    assert.equal((await folder.running.curl("plain", "http://late:8000/")).body, "web late");
    assert.equal((await pids(folder))["plain app"], before["plain app"]);
    await folder.write(WEB + more);
    const result = await folder.up();
    assert.match(result.stderr, /plain removed$/m);
    const { members } = await folder.running.status();
    assert.deepEqual(
      members.map(({ name }) => name),
      ["istiod", "web", "late"],
    );
  });

  await t.test("a mistake changes nothing", async () => {
    const before = await pids(folder);
    await folder.write(WEB.replace("[node, web.cjs]", "[nodde]"));
    const result = await folder.up();
    assert.equal(result.code, 2);
    assert.match(result.stderr, /command "nodde" is not found/);
    assert.deepEqual(await pids(folder), before);
  });
});

const LATE_SERVICE = `
apiVersion: v1
kind: Service
metadata: {name: late}
spec: {selector: {app: late}, ports: [{name: http, port: 8000, targetPort: 80}]}
`;

test("published ports come and go with up, and nothing is restarted for them", { skip }, async () => {
  await using folder = await meshFolder(WEB + PLAIN);
  assert.equal((await folder.up()).code, 0);
  const before = await pids(folder);
  const published = WEB.replace("ports:", 'publish: ["127.0.0.1:0:80"]\n    ports:') + PLAIN;
  await folder.write(published);
  const opened = await folder.up();
  assert.equal(opened.code, 0, opened.stderr);
  const address = await folder.running.address("web");
  assert.equal(await (await fetch(address)).text(), "web web");
  assert.match((await folder.up()).stderr, /nothing to do$/m);
  assert.equal(await folder.running.address("web"), address);

  const taken = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => taken.once("listening", resolve));
  const { port } = taken.address() as AddressInfo;
  await folder.write(published.replace("127.0.0.1:0:80", `127.0.0.1:${port}:80`));
  const refused = await folder.up();
  taken.close();
  assert.equal(refused.code, 3, refused.stderr);
  assert.match(refused.stderr, new RegExp(`Cannot publish "127.0.0.1:${port}:80" of "web": port ${port} is in use`));
  assert.equal(await (await fetch(address)).text(), "web web", "what was published stays");

  await folder.write(WEB + PLAIN);
  assert.match((await folder.up()).stderr, new RegExp(`${address.slice("http://".length)} closed$`, "m"));
  await assert.rejects(fetch(address));
  assert.deepEqual(await pids(folder), before);
});

test("restart, stop, start and scale change one workload, and say so", { skip }, async () => {
  await using folder = await meshFolder(WEB + PLAIN);
  assert.equal((await folder.up()).code, 0);
  const first = await pids(folder);
  const say = async (command: string, ...args: readonly string[]) => {
    const { code, stderr } = await folder.mizzen(command, ...args);
    assert.equal(code, 0, stderr);
    return stderr.trim().split("\n").at(-1);
  };
  assert.equal(await say("restart", "web"), "web restarted");
  const second = await pids(folder);
  assert.notEqual(second["web proxy"], first["web proxy"]);
  assert.equal(second["plain app"], first["plain app"]);

  assert.equal(await say("stop", "web"), "web stopped");
  const stopped = await folder.running.member("web");
  assert.deepEqual([stopped.state, stopped.ready, stopped.reason], ["stopped", false, "stopped"]);
  assert.match((await folder.mizzen("stop", "web")).stderr, /nothing to do$/m);
  assert.equal(await say("start", "web"), "web started");
  assert.equal((await folder.running.curl("plain", "http://web:8000/")).body, "web web");

  assert.equal(await say("scale", "web", "3"), "web-3 added");
  const seen = new Set<string>();
  for (let tries = 0; seen.size < 3 && tries < 60; tries++) {
    seen.add((await folder.running.curl("plain", "http://web:8000/")).body);
  }
  assert.deepEqual([...seen].sort(), ["web web", "web web-2", "web web-3"]);
  assert.equal(await say("restart", "web"), "web-3 restarted");
  assert.equal(await say("scale", "web", "0"), "web-3 removed");
  assert.equal((await folder.running.status()).members.length, 2);
  assert.equal(await say("scale", "web", "1"), "web added");
  assert.equal(await say("stop", "istiod"), "istiod stopped");
  assert.equal((await folder.running.curl("plain", "http://web:8000/")).body, "web web", "proxies go on without it");
  assert.equal(await say("start", "istiod"), "istiod started");

  const unknown = await folder.mizzen("restart", "wb");
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /has no workload "wb": choose one of istiod, plain, web/);
  assert.equal((await folder.mizzen("scale", "web", "1000")).code, 2);
  assert.equal((await folder.mizzen("scale", "web", "-1")).code, 2);
  assert.equal((await mizzen(["restart", "web", "--mesh", "not-there"])).code, 4);
});

test("replicas are restarted one after the other, and no call is lost", { skip }, async () => {
  await using folder = await meshFolder(`${WEB.replace("command:", "replicas: 2\n    command:")}
  - {name: caller, command: [sleep, infinity]}
`);
  assert.equal((await folder.up()).code, 0);
  const call = 'curl -sS -o /dev/null -w "%{http_code}\\n" http://web:8000/ || echo failed';
  const calls = folder.running.exec("caller", ["sh", "-c", `for i in $(seq 300); do ${call}; done`]);
  const restarted = await folder.mizzen("restart", "web");
  assert.equal(restarted.code, 0, restarted.stderr);
  const codes = (await calls).stdout.trim().split("\n");
  assert.ok(codes.length > 50, `${codes.length} calls`);
  assert.deepEqual(new Set(codes), new Set(["200"]));
});

test("a member joins for as long as its connection is open", { skip }, async () => {
  await using folder = await meshFolder(WEB + PLAIN);
  assert.equal((await folder.up()).code, 0);
  const member = {
    ...{ name: "guest", workload: "guest", namespace: "default", serviceAccount: "guest", labels: { app: "guest" } },
    ...{ annotations: {}, ports: [], publish: [], after: [], readiness: undefined, app: undefined },
    proxy: "sidecar" as const,
  };
  const join = { kind: "join", member, account: NOBODY, cwd: "/", timeoutMs: 30_000 } as const;
  {
    using connection = await connectToMesh(folder.state);
    const status = await connection.ask(join);
    assert.equal(status.name, "guest");
    assert.equal((await folder.running.curl("guest", "http://web:8000/")).body, "web web");
    await assert.rejects(connection.ask(join), { code: "MEMBER_EXISTS" });
    await folder.write(`${WEB}${PLAIN}  - {name: more, inject: false, command: [sleep, infinity]}\n`);
    assert.equal((await folder.up()).code, 0, "guests are no reason to change anything");
    assert.ok((await folder.running.status()).members.some(({ name }) => name === "guest"));
  }
  await folder.running.until(({ members }) => members.every(({ name }) => name !== "guest"));
});

test("attach shows what happens, and Ctrl-C leaves the mesh alone", { skip }, async () => {
  await using folder = await meshFolder(PLAIN.replace("  - ", "  workloads:\n  - "));
  assert.equal((await folder.up()).code, 0);
  const [stays, leaves] = [folder.begin("attach"), folder.begin("attach")];
  for (const attached of [stays, leaves]) await attached.until(/^attached to mesh/m);
  assert.equal((await folder.mizzen("restart", "plain")).code, 0);
  for (const attached of [stays, leaves]) await attached.until(/plain restarted$/m);
  leaves.child.kill("SIGINT");
  assert.equal(await leaves.ended, 0);
  assert.match(leaves.said, /^detached$/m);
  assert.equal((await folder.running.status()).phase, "ready");
  assert.equal((await folder.running.down()).code, 0);
  assert.equal(await stays.ended, 0);
  assert.match(stays.said, /^mesh ".*" has ended$/m);
});

test("what is wrong with a saved file is told by attach and ps, and again after it was something else", {
  skip,
}, async () => {
  await using folder = await meshFolder(PLAIN.replace("  - ", "  workloads:\n  - "));
  assert.equal((await folder.up()).code, 0);
  const attached = folder.begin("attach");
  await attached.until(/^attached to mesh/m);
  const route =
    "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web}\n" +
    "spec: {hosts: [web], http: [{route: [{destination: {host: web}}], timout: 3s}]}\n";
  await folder.add("route.yaml", route);
  await attached.until(
    /warning: .*route\.yaml:4: VirtualService\/default\/web: spec\.http\[0\]\.timout is not a known field/,
  );
  await folder.add("route.yaml", "a: [b");
  await attached.until(/error: .*route\.yaml:1: is not YAML/);
  await folder.add("route.yaml", route);
  await attached.until(/is not YAML[\s\S]*route\.yaml:4: .*timout is not a known field/);
  await noted(folder, /note: warning: .*route\.yaml:4: .*timout is not a known field/);
  await folder.add("route.yaml", "a: [b");
  await noted(folder, /note: error: .*route\.yaml:1: is not YAML/);
  await folder.add("route.yaml", route.replace(", timout: 3s", ""));
  await noted(folder, /^(?![\s\S]*note:)/);
});

/** Waits until `ps` says so beside its table. */
async function noted(folder: MeshFolder, expected: RegExp): Promise<void> {
  await eventually(`ps says ${expected}`, async () => expected.test((await folder.mizzen("ps")).stderr));
}

test("flags may stand behind the workload, and pushes is about the mesh that is up", { skip }, async () => {
  await using folder = await meshFolder(PLAIN.replace("  - ", "  workloads:\n  - "));
  assert.equal((await folder.up()).code, 0);
  for (const command of [
    ["--", "echo", "--state", "x"],
    ["echo", "--state", "x"],
  ]) {
    const { stdout, stderr } = await mizzen(["exec", "plain", "--state", folder.state, ...command]);
    assert.equal(stdout, "--state x\n", stderr);
  }
  const { stdout, stderr } = await folder.mizzen("pushes", "-o", "json");
  assert.ok(Array.isArray(JSON.parse(stdout).changes), stderr);
});

test("hints are about the objects that there are when a workload is added", { skip }, async () => {
  await using folder = await meshFolder(PLAIN.replace("  - ", "  workloads:\n  - "));
  assert.equal((await folder.up()).code, 0);
  await folder.add(
    "late.yaml",
    "apiVersion: v1\nkind: Service\nmetadata: {name: late}\nspec: {selector: {app: late}, ports: [{port: 80}]}\n",
  );
  const late = PLAIN.replace("name: plain,", "name: late, labels: {app: late}, ports: [80],");
  await folder.write(PLAIN.replace("  - ", "  workloads:\n  - ") + late);
  const changed = await folder.up();
  assert.match(changed.stderr, /late added$/m);
  assert.doesNotMatch(changed.stderr, /workload "late" is selected by no Service/);
});

test("attach tells of an app that ended by itself, and not of one that was asked to", { skip }, async () => {
  await using folder = await meshFolder(PLAIN.replace("  - ", "  workloads:\n  - "));
  assert.equal((await folder.up()).code, 0);
  const attached = folder.begin("attach");
  await attached.until(/^attached to mesh/m);
  await folder.running.kill({ member: "plain", process: "app" });
  await attached.until(/plain was killed by SIGKILL: it is started again$/m);
  assert.equal((await folder.mizzen("restart", "plain")).code, 0);
  await attached.until(/plain restarted$/m);
  assert.equal(attached.said.match(/plain was killed/g)?.length, 1, attached.said);
});
