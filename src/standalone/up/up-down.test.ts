/** The commands themselves: a mesh that comes and goes, and every reason for which it does not come. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { machineState, meshFolder, processesAbout, tracesOf, WEB_SPEC } from "../../../test/support/mesh-folder.ts";
import { meshUnavailable, mizzen, RunningMesh, upMesh } from "../../../test/support/mesh-run.ts";

const skip = meshUnavailable();
const SPEC = WEB_SPEC;

test("up and down leave the machine as it was: network, resolver, mounts, control groups, processes", {
  skip,
}, async () => {
  await using folder = await meshFolder(SPEC.replace("ports: [80]", "ports: [80]\n    limits: {pids: 50}"));
  const before = await machineState();
  const started = await folder.up();
  assert.equal(started.code, 0, started.stderr);
  const mesh = new RunningMesh("", folder.state);
  const { id } = await mesh.status();
  assert.deepEqual(await machineState(), before, "while the mesh is up");
  const traces = (await tracesOf(id, folder.state)).join("\n");
  for (const seen of [/\/run\/netns\//, /\/run\/mizzen\//, /cgroup/, /^nsfs /m, /^process /m])
    assert.match(traces, seen);

  const stopped = await mesh.down();
  assert.deepEqual(stopped.code, 0, stopped.stderr);
  assert.deepEqual(await machineState(), before);
  assert.deepEqual(await tracesOf(id, folder.state), []);
  assert.deepEqual((await readdir(folder.state)).sort(), [".mizzen", "ca", "issuer", "logs"]);
});

test("exec, logs and ps work from another shell; a workload without a sidecar has names and addresses", {
  skip,
}, async () => {
  await using folder = await meshFolder(SPEC);
  const started = await folder.up();
  assert.equal(started.code, 0, started.stderr);
  assert.match(started.stdout, /^WORKLOAD +NAMESPACE +ADDRESS +PORTS +READY\nistiod /m);
  const mesh = new RunningMesh("", folder.state);
  for (const host of ["web", "web.default", "web.default.svc.cluster.local"]) {
    assert.equal((await mesh.curl("plain", `http://${host}:8000/`)).body, "web web");
  }
  assert.equal((await folder.mizzen("exec", "plain", "--", "sh", "-c", "exit 7")).code, 7);
  assert.equal((await folder.mizzen("exec", "plain", "--", "sh", "-c", "kill -9 $$")).code, 137);
  assert.equal((await folder.mizzen("exec", "plain", "no-such-command")).code, 127);
  const { uid } = (await mesh.member("web")).shell.account;
  const { stdout } = await mesh.exec("web", ["sh", "-c", "id -u; uname -n; echo $POD_NAME"]);
  assert.equal(stdout, `${uid}\nweb\nweb\n`);
  assert.match(await mesh.logs("web", "proxy"), /Envoy proxy is ready/);
  const unknown = await folder.mizzen("exec", "nobody-there", "true");
  assert.equal(unknown.code, 2);
  assert.match(
    unknown.stderr,
    /^mizzen: Mesh ".*" has no workload "nobody-there": choose one of istiod, web, plain\n$/,
  );
  const again = await folder.up();
  assert.equal(again.code, 0);
  assert.match(again.stderr, /^mesh ".*" is up and as it should be: nothing to do$/m);
  const other = await mizzen(["up", "samples/httpbin", "--state", folder.state]);
  assert.equal(other.code, 4);
  assert.match(other.stderr, /^mizzen: Cannot start mesh "httpbin": a mesh of this name is up from ".*mesh.yaml"/m);
});

test("a killed app, agent, Envoy and control plane come back, and restarts are counted", { skip }, async () => {
  await using folder = await meshFolder(SPEC);
  const started = await folder.up();
  assert.equal(started.code, 0, started.stderr);
  const mesh = new RunningMesh("", folder.state);
  const root = await readFile(join(folder.state, "ca/root-cert.pem"), "utf8");
  await mesh.kill("istiod");
  await mesh.kill({ member: "web", process: "app" });
  await mesh.until(({ members }) => members.every(({ ready, app }) => ready && (app?.restarts ?? 0) <= 1));
  await mesh.until(({ members }) => members[0]?.app?.restarts === 1 && members.every(({ ready }) => ready));
  await mesh.kill({ member: "web", process: "agent" });
  await mesh.until(
    ({ members }) => members.some(({ proxy }) => proxy?.restarts === 1) && members.every(({ ready }) => ready),
  );
  await mesh.kill({ member: "web", process: "envoy" });
  await mesh.until(
    ({ members }) => members.some(({ proxy }) => proxy?.restarts === 2) && members.every(({ ready }) => ready),
  );
  assert.equal(await readFile(join(folder.state, "ca/root-cert.pem"), "utf8"), root);
  assert.equal((await mesh.curl("plain", "http://web:8000/")).body, "web web");
});

test("down removes everything after the runner was killed, and up cleans before it starts", { skip }, async () => {
  await using folder = await meshFolder(SPEC);
  assert.equal((await folder.up()).code, 0);
  const mesh = new RunningMesh("", folder.state);
  const { id } = await mesh.status();
  await mesh.kill("runner");
  const lost = await mizzen(["ps", "--state", folder.state]);
  assert.match(lost.stderr, /the runner of mesh ".*" is gone/);
  const restarted = await folder.up();
  assert.equal(restarted.code, 0, restarted.stderr);
  await mesh.kill("runner");
  assert.equal((await mesh.down()).code, 0);
  assert.deepEqual(await processesAbout(folder.state), []);
  assert.deepEqual(await tracesOf(id, folder.state), []);
});

test("down removes a mesh of which only the state folder tells, as after a lost /run", { skip }, async () => {
  await using folder = await meshFolder("  workloads: [{name: plain, inject: false, command: [sleep, infinity]}]\n");
  assert.equal((await folder.up()).code, 0);
  const mesh = new RunningMesh("", folder.state);
  const { id } = await mesh.status();
  await mesh.kill("runner");
  await rm(join("/run/mizzen", `${id}.json`));
  assert.equal((await mizzen(["ps", "--state", folder.state])).code, 4);
  const stopped = await mizzen(["down", folder.path, "--state", folder.state]);
  assert.equal(stopped.code, 0, stopped.stderr);
  assert.deepEqual(await processesAbout(folder.state), []);
  assert.deepEqual(await tracesOf(id, folder.state), []);
});

test("Ctrl-C stops a mesh that stays in the foreground, and a killed launcher takes it along", { skip }, async () => {
  await using folder = await meshFolder(SPEC);
  for (const signal of ["SIGINT", "SIGKILL"] as const) {
    const child = spawn(join(import.meta.dirname, "../../../bin/mizzen"), ["up", folder.path, "--state", folder.state]);
    let said = "";
    child.stderr.on("data", (chunk) => {
      said += chunk;
    });
    while (!said.includes("Press Ctrl-C"))
      await Promise.race([once(child.stderr, "data"), once(child, "exit").then(() => assert.fail(said))]);
    child.kill(signal);
    const [code] = await once(child, "exit");
    if (signal === "SIGINT") assert.equal(code, 0, said);
    while ((await processesAbout(folder.state)).length > 0) await new Promise((resolve) => setTimeout(resolve, 50));
    assert.deepEqual((await readdir(folder.state)).sort(), [".mizzen", "ca", "issuer", "logs"]);
  }
});

const REFUSED: readonly (readonly [string, string, number, RegExp])[] = [
  [
    "a wrong field",
    "  workloads:\n  - {name: web, comand: [node]}\n",
    2,
    /mesh\.yaml:6: spec\.workloads\[0\]\.comand is not a known field/,
  ],
  [
    "a command that is not there",
    "  workloads: [{name: web, command: [nodde]}]\n",
    2,
    /workload "web": command "nodde" is not found in/,
  ],
  [
    "a user that is not there",
    "  workloads: [{name: web, command: [node], user: nobdy}]\n",
    2,
    /workload "web": this machine has no user "nobdy"/,
  ],
  [
    "a working folder that is not there",
    "  workloads: [{name: web, command: [node], workingDir: gone}]\n",
    2,
    /workload "web": there is no folder ".*gone"/,
  ],
  [
    "configuration that is not there",
    "  config: [gone]\n  workloads: [{name: web, command: [node]}]\n",
    2,
    /spec\.config names ".*gone", which does not exist/,
  ],
];

for (const [what, spec, code, expected] of REFUSED) {
  test(`up refuses ${what} in one line, and leaves nothing`, { skip }, async () => {
    await using folder = await meshFolder(spec);
    const refused = await folder.up();
    assert.equal(refused.code, code, refused.stderr);
    assert.match(refused.stderr, expected);
    assert.ok(refused.stderr.startsWith("mizzen: "), refused.stderr);
    assert.deepEqual(await processesAbout(folder.state), []);
  });
}

test("up refuses a folder without a mesh.yaml, and a missing one", { skip }, async () => {
  const empty = await mkdtemp(join(tmpdir(), "up-"));
  const noFile = await mizzen(["up", empty]);
  assert.deepEqual([noFile.code, noFile.stderr], [2, `mizzen: Cannot find a file "mesh.yaml" in "${empty}"\n`]);
  await mkdir(join(empty, "mesh.yaml"));
  assert.equal((await mizzen(["up", empty])).stderr, noFile.stderr);
  const noFolder = await mizzen(["up", join(empty, "gone")]);
  assert.deepEqual([noFolder.code, noFolder.stderr], [2, `mizzen: Cannot find "${join(empty, "gone")}"\n`]);
  await rm(empty, { recursive: true });
});

test("up says that Envoy is missing, that a state folder is unusable, that a port is taken", { skip }, async () => {
  await using folder = await meshFolder(SPEC);
  const noEnvoy = await mizzen(["up", folder.path, "--detach", "--state", folder.state], { ENVOY: "/nowhere/envoy" });
  assert.equal(noEnvoy.code, 3);
  assert.match(
    noEnvoy.stderr,
    /^mizzen: Cannot start a mesh without Envoy: there is none at "\/nowhere\/envoy"; run "make setup"/m,
  );

  const closed = join(folder.path, "../closed");
  await mkdir(closed, { mode: 0o700 });
  const unreachable = await mizzen(["up", folder.path, "--state", join(closed, "state")]);
  assert.equal(unreachable.code, 3);
  assert.match(unreachable.stderr, /other users may not enter ".*closed"; choose another folder with --state/);
  const foreign = await mizzen(["up", folder.path, "--state", join(folder.path, "..")]);
  assert.equal(foreign.code, 2);
  assert.match(foreign.stderr, /^mizzen: Cannot keep state in ".*": it holds other files/m);
  const inside = await mizzen(["up", folder.path, "--state", join(folder.path, "state")]);
  assert.equal(inside.code, 2);
  assert.match(inside.stderr, /^mizzen: Cannot keep state in ".*state": it is inside ".*mesh", which the mesh reads/m);
  const unwritable = await mizzen(["up", folder.path, "--state", "/proc/state"]);
  assert.equal(unwritable.code, 3);
  assert.match(unwritable.stderr, /Cannot keep state in "\/proc\/state"/);

  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const address = taken.address();
  assert.ok(address !== null && typeof address === "object");
  await using busy = await meshFolder(`${SPEC}  gateways: [{name: gw, publish: ["${address.port}:80"]}]\n`);
  const inUse = await busy.up();
  assert.equal(inUse.code, 3);
  assert.match(inUse.stderr, new RegExp(`Cannot publish "${address.port}:80" of "gw": port ${address.port} is in use`));
  taken.close();
});

test("up gives up on an app that ends at once, and tells its last words", { skip }, async () => {
  await using folder = await meshFolder(
    '  workloads: [{name: web, inject: false, command: [sh, -c, "echo no database >&2; exit 3"]}]\n',
  );
  const failed = await folder.up();
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /^mizzen: workload "web" exited with code 3, 3 times in a row; it said: no database$/m);
  assert.deepEqual(await processesAbout(folder.state), []);
});

test("up gives up on an Envoy that ends at once", { skip }, async () => {
  await using folder = await meshFolder("  gateways: [{name: gw}]\n");
  const failed = await mizzen(["up", folder.path, "--detach", "--state", folder.state], { ENVOY: "/bin/false" });
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /^mizzen: proxy of "gw" exited with code \d+, 3 times in a row; it said: /m);
  assert.match(failed.stderr, /^logs of what happened are in .*\/state\/logs$/m);
});

test("several meshes are up at once, each with services of its own", { skip }, async () => {
  await using one = await meshFolder(SPEC);
  await using two = await meshFolder(SPEC);
  const results = await Promise.all([one.up(), two.up()]);
  assert.deepEqual(
    results.map(({ code }) => code),
    [0, 0],
    results.map(({ stderr }) => stderr).join(),
  );
  for (const { state } of [one, two]) {
    assert.equal((await new RunningMesh("", state).curl("plain", "http://web:8000/")).body, "web web");
  }
});

test("upMesh() takes its mesh down at the end of the block", { skip }, async () => {
  await using folder = await meshFolder(SPEC);
  let state = "";
  {
    await using mesh = await upMesh(folder.path);
    state = mesh.stateFolder;
    assert.notDeepEqual(await processesAbout(state), []);
  }
  assert.deepEqual(await processesAbout(state), []);
});
