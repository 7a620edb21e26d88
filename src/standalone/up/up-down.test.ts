/** The commands themselves: a mesh that comes and goes, and every reason for which it does not come. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { type Finished, meshUnavailable, mizzen, RunningMesh, upMesh } from "../../../test/support/mesh-run.ts";
import { runCommand } from "../host/command.ts";

const skip = meshUnavailable();

const HEAD = "apiVersion: mizzen.dev/v1alpha1\nkind: Mesh\nmetadata: {name: NAME}\nspec:\n";
const SERVICE = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 8000, targetPort: 80}]}
`;
const WEB = `require("node:http").createServer((q, a) => a.end("web " + process.env.POD_NAME)).listen(80)`;
const SPEC = `
  workloads:
  - name: web
    labels: {app: web}
    command: [node, web.cjs]
    ports: [80]
    readiness: {httpGet: {path: /, port: 80}}
  - {name: plain, inject: false, command: [sleep, infinity]}
`;

interface Folder extends AsyncDisposable {
  readonly path: string;
  readonly state: string;
  up(...args: readonly string[]): Promise<Finished>;
}

/** A folder with a mesh of its own. */
async function meshFolder(spec: string): Promise<Folder> {
  const root = await mkdtemp(join(tmpdir(), "up-"));
  const path = join(root, "mesh");
  await mkdir(path);
  for (const folder of [root, path]) await chmod(folder, 0o755);
  const name = root.slice(-6).toLowerCase();
  await writeFile(join(path, "mesh.yaml"), HEAD.replace("NAME", `up-${name}`) + spec);
  await writeFile(join(path, "service.yaml"), SERVICE);
  await writeFile(join(path, "web.cjs"), WEB);
  const state = join(root, "state");
  return {
    path,
    state,
    up: (...args) => mizzen(["up", path, "--detach", "--state", state, ...args]),
    async [Symbol.asyncDispose]() {
      await mizzen(["down", path, "--state", state]);
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** All that a mesh could leave behind on the machine. */
async function machine(): Promise<Record<string, string>> {
  const run = (...argv: string[]) => runCommand({ argv });
  const inodes = async () => await run("sh", "-c", "ls -1 /run/netns /etc/netns /run/mizzen 2>/dev/null || true");
  return {
    links: (await run("ip", "-o", "link")).replaceAll(/^\d+: |qlen \d+/gm, ""),
    addresses: (await run("ip", "-o", "addr")).replaceAll(/\S+_lft \S+/g, ""),
    routes: await run("ip", "route", "show", "table", "all"),
    rules: await run("ip", "rule"),
    iptables: (await run("iptables-save")).replaceAll(/^#.*$|\[\d+:\d+\]/gm, ""),
    ip6tables: (await run("ip6tables-save")).replaceAll(/^#.*$|\[\d+:\d+\]/gm, ""),
    resolvers: await readFile("/etc/resolv.conf", "utf8"),
    hosts: await readFile("/etc/hosts", "utf8"),
    hostname: await run("uname", "-n"),
    forwarding: await readFile("/proc/sys/net/ipv4/ip_forward", "utf8"),
    names: await inodes(),
  };
}

/** Leaves out what meshes of other tests, which run at the same time, come and go with. */
function withoutOthers(state: Record<string, string>, own: string): Record<string, string> {
  const names = (state.names ?? "").split("\n").filter((name) => name.includes(own));
  return { ...state, names: names.join("\n") };
}

test("up and down leave the machine as it was, and mounts, namespaces and processes too", { skip }, async () => {
  await using folder = await meshFolder(SPEC);
  const before = await machine();
  const started = await folder.up();
  assert.equal(started.code, 0, started.stderr);
  const mesh = new RunningMesh("", folder.state);
  const { id } = await mesh.status();
  const during = await machine();
  assert.match(during.names ?? "", new RegExp(id));
  assert.deepEqual({ ...during, names: "" }, { ...before, names: "" }, "while the mesh is up");

  const stopped = await mesh.down();
  assert.deepEqual(stopped.code, 0, stopped.stderr);
  assert.deepEqual(withoutOthers(await machine(), id), withoutOthers(before, id));
  const mounts = await readFile("/proc/self/mounts", "utf8");
  assert.ok(!mounts.includes(id) && !mounts.includes(folder.state), mounts);
  assert.deepEqual(await processesAbout(folder.state), []);
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
  assert.equal((await mesh.exec("plain", ["sh", "-c", "exit 7"])).code, 7);
  assert.equal((await mesh.exec("plain", ["sh", "-c", "kill -9 $$"])).code, 137);
  assert.equal((await mesh.exec("plain", ["no-such-command"])).code, 127);
  assert.equal((await mesh.exec("web", ["sh", "-c", "id -u; uname -n; echo $POD_NAME"])).stdout, "65534\nweb\nweb\n");
  assert.match(await mesh.logs("web", "proxy"), /Envoy proxy is ready/);
  const unknown = await mesh.exec("nobody-there", ["true"]);
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
  assert.ok(!(await machine()).names?.includes(id));
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
  assert.ok(!(await machine()).names?.includes(id));
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
  await using two = await meshFolder(SPEC.replace("POD_NAME", "POD_IP"));
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

/** Command lines and folders of processes that have to do with a state folder. */
async function processesAbout(state: string): Promise<string[]> {
  const script = `for process in /proc/[0-9]*; do
    folder=$(readlink "$process/cwd" 2>/dev/null) || continue
    case "$folder" in "$1"*) tr '\\0' ' ' < "$process/cmdline"; echo;; esac
  done; true`;
  return (await runCommand({ argv: ["sh", "-c", script, "sh", state] })).split("\n").filter((line) => line !== "");
}
