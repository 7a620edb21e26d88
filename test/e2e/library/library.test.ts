/** The library as programs use it, with a real mesh. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import test from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { openMesh, startMesh } from "#bin/mesh.ts";
import { meshFolder, processesAbout, WEB_SPEC } from "../../support/mesh-folder.ts";
import { meshUnavailable } from "../../support/mesh-run.ts";

const skip = meshUnavailable();
const SPEC = `${WEB_SPEC}  - {name: caller, serviceAccount: caller, command: [sleep, infinity]}\n`;

function fault(httpStatus: number): object {
  return {
    apiVersion: "networking.istio.io/v1",
    kind: "VirtualService",
    metadata: { name: "web" },
    spec: {
      hosts: ["web"],
      http: [
        { fault: { abort: { httpStatus, percentage: { value: 100 } } }, route: [{ destination: { host: "web" } }] },
      ],
    },
  };
}

test("a mesh for a program: calls, commands, configuration, workloads; gone with stop()", { skip }, async (t) => {
  await using folder = await meshFolder(SPEC);
  const lines: string[] = [];
  const mesh = await startMesh(folder.path, { onProgress: (line) => lines.push(line) });
  await t.test("fetch() is a call through the workload's sidecar", async () => {
    const answer = await mesh.workload("caller").fetch("http://web:8000/", { headers: { "x-a": "b" } });
    assert.deepEqual([answer.status, answer.headers.get("server")], [200, "envoy"]);
    assert.equal(await answer.text(), "web web");
    await assert.rejects(mesh.workload("caller").fetch("http://nowhere:8000/"), { code: "FETCH_FAILED" });
  });
  await t.test("exec() gives code and output, with input and variables", async () => {
    const script = "cat; echo $GREETING; test $(id -u) -ge 2000000000 && echo own; echo bad >&2; exit 3";
    const options = { input: "in\n", env: { GREETING: "hello" } };
    assert.deepEqual(await mesh.workload("plain").exec(["sh", "-c", script], options), {
      code: 3,
      stdout: "in\nhello\nown\n",
      stderr: "bad\n",
    });
    const signal = AbortSignal.timeout(50);
    await assert.rejects(mesh.workload("plain").exec(["sleep", "60"], { signal }), { name: "TimeoutError" });
    await assert.rejects(mesh.workload("plan").exec(["true"]), { code: "MEMBER_UNKNOWN" });
  });
  await t.test("apply() has taken effect when it resolves, and delete() takes it back", async () => {
    const status = async () => (await mesh.workload("caller").fetch("http://web:8000/")).status;
    assert.deepEqual(await mesh.apply(fault(418)), ["VirtualService/default/web created"]);
    assert.equal(await status(), 418);
    assert.deepEqual(await mesh.apply(JSON.stringify(fault(418))), ["VirtualService/default/web unchanged"]);
    assert.deepEqual(await mesh.apply([fault(451)]), ["VirtualService/default/web changed"]);
    assert.equal(await status(), 451);
    assert.deepEqual(await mesh.delete(fault(0)), ["VirtualService/default/web deleted"]);
    assert.equal(await status(), 200);
    await assert.rejects(mesh.delete(fault(0)), { code: "OBJECT_UNKNOWN", message: /; nothing was$/ });
  });
  await t.test("apply() refuses what is wrong, and what is in the mesh's own files", async () => {
    await assert.rejects(mesh.apply(fault(9)), { code: "CONFIG_INVALID", message: /^config:\d+: VirtualService/ });
    const service = { apiVersion: "v1", kind: "Service", metadata: { name: "web" }, spec: { ports: [{ port: 1 }] } };
    await assert.rejects(mesh.apply(service), { code: "OBJECT_TAKEN", message: /service\.yaml:2; change it there/ });
  });
  await t.test("workloads are looked at and changed", async () => {
    const web = mesh.workload("web");
    const { kind, state, ready, reason, restarts } = await web.status();
    assert.deepEqual(
      { kind, state, ready, reason, restarts },
      {
        ...{ kind: "workload", state: "running", ready: true, reason: "", restarts: 0 },
      },
    );
    await web.scale(2);
    assert.deepEqual((await mesh.workloads()).map(({ name }) => name).sort(), [
      "caller",
      "istiod",
      "plain",
      "web",
      "web-2",
    ]);
    await web.stop();
    assert.equal((await web.status()).state, "stopped");
    await web.start();
    assert.ok((await web.status()).ready);
    assert.match(await web.logs("proxy"), /Envoy proxy is ready/);
    await assert.rejects(mesh.workload("plain").logs("proxy"), { code: "MIZZEN_FAILED", message: /has no proxy/ });
    await assert.rejects(mesh.url(), { code: "NOTHING_PUBLISHED" });
  });
  await t.test("reload() follows a changed mesh.yaml, openMesh() finds the mesh", async () => {
    await folder.write(SPEC.replace("ports: [80]", 'ports: [80]\n    publish: ["0:80"]\n    env: {GREETING: hi}'));
    await mesh.reload();
    const other = await openMesh(mesh.state);
    assert.deepEqual([other.name, await other.url()], [mesh.name, await mesh.url("web")]);
    assert.equal(await (await fetch(await other.url())).text(), "web web hi");
  });
  await Promise.all([mesh.stop(), mesh.stop()]);
  assert.ok(lines.some((line) => line.endsWith("caller ready")));
  assert.deepEqual(await processesAbout(mesh.state), []);
  await assert.rejects(access(mesh.state));
  await assert.rejects(mesh.workloads(), { code: "MESH_NOT_UP" });
});

test("startMesh() fails with the code of what is wrong, and leaves nothing", { skip }, async () => {
  await using temporary = await ownTemporaryFolder();
  await assert.rejects(startMesh("/nowhere"), { code: "MESH_FILE_MISSING", message: 'Cannot find "/nowhere"' });
  await using wrong = await meshFolder("  workloads: [{name: web, comand: [node]}]\n");
  await assert.rejects(startMesh(wrong.path), { code: "MESH_FILE_INVALID", message: /mesh\.yaml:5: .*comand is not/ });
  await using broken = await meshFolder("  workloads: [{name: web, command: [sh, -c, echo I cannot; exit 5]}]\n");
  await assert.rejects(startMesh(broken.path), { code: "START_FAILED", message: /I cannot/ });
  await using slow = await meshFolder(
    "  workloads: [{name: web, command: [sleep, infinity], ports: [80], readiness: {tcpSocket: {port: 80}}}]\n",
  );
  await assert.rejects(startMesh(slow.path, { timeoutMs: 100 }), { code: "START_FAILED", message: /web/ });
  await assert.rejects(openMesh(join(dirname(slow.path), "state")), { code: "MESH_NOT_UP" });
  const left = await readdir(temporary.path);
  assert.deepEqual(
    left.filter((name) => name.startsWith("mizzen-")),
    [],
  );
});

/** A folder for temporary files that nobody else uses, for as long as it is held. */
async function ownTemporaryFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp("/tmp/library-");
  await chmod(path, 0o755);
  const { TMPDIR } = process.env;
  process.env.TMPDIR = path;
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      if (TMPDIR === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = TMPDIR;
      await rm(path, { recursive: true });
    },
  };
}

const OWNER = `
import { startMesh } from ${JSON.stringify(join(import.meta.dirname, "../../../src/bin/mesh.ts"))};
const mesh = await startMesh(process.argv[1], { state: process.argv[2] });
console.log(mesh.name);
setInterval(() => undefined, 1000);
`;

test("a mesh ends with the program that started it, however that ends", { skip }, async () => {
  await using folder = await meshFolder("  workloads: [{name: plain, inject: false, command: [sleep, infinity]}]\n");
  const child = spawn(process.execPath, ["--input-type=module", "-e", OWNER, folder.path, folder.state], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  for (let tries = 0; (await processesAbout(folder.state)).length > 0; tries++) {
    assert.ok(tries < 1_200, "still there");
    await delay(50);
  }
  assert.deepEqual((await readdir(folder.state)).sort(), [".mizzen", "ca", "issuer", "logs"]);
});
