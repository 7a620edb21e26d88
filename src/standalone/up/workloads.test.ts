/** Workloads of every kind in real meshes: jobs, order, probes, limits, callers without a sidecar. */
import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { Begun, meshFolder, tracesOf } from "../../../test/support/mesh-folder.ts";
import { meshUnavailable } from "../../../test/support/mesh-run.ts";
import { meshId } from "../plan/names.ts";

const skip = meshUnavailable();

test("a mesh that ends with its jobs runs them in order and exits with the code of the one that failed", {
  skip,
}, async () => {
  await using folder = await meshFolder(`
  exitWhenDone: true
  workloads:
  - {name: web, labels: {app: web}, command: [node, web.cjs], ports: [80], readiness: {httpGet: {port: 80}}}
  - {name: first, command: [curl, -sS, "http://web:8000/"], restart: never, after: [web]}
  - {name: second, command: [sh, -c, "echo ran; exit 7"], restart: never, after: [first]}
  - {name: third, command: [echo, never], restart: never, after: [second]}
`);
  const up = new Begun(["up", folder.path, "--state", folder.state]);
  assert.equal(await up.ended, 7, up.said);
  assert.match(up.said, /job first is done\n/);
  assert.match(up.said, /job second failed: it exited with code 7\n/);
  assert.match(up.said, /the mesh is down, nothing of it is left$/m);
  assert.deepEqual(await tracesOf(meshId(folder.state), folder.state), []);
});

test("--exit-when-done ends a detached mesh too, and attach passes the exit code on", { skip }, async () => {
  await using folder = await meshFolder(
    '  workloads: [{name: job, inject: false, command: [sh, -c, "until [ -e go ]; do sleep 0.1; done; exit 5"], restart: never}]\n',
  );
  assert.equal((await folder.up("--exit-when-done")).code, 0);
  const attached = folder.begin("attach");
  await attached.until(/./);
  await writeFile(join(folder.path, "go"), "");
  assert.equal(await attached.ended, 5, attached.said);
});

test("jobs that are done stay listed without a proxy, those that fail are tried again, up starts what waits for them", {
  skip,
}, async (t) => {
  // The job runs as nobody, who may not write into the mesh's folder.
  const mark = join(tmpdir(), `mark-${process.pid}-${Date.now()}`);
  t.after(() => rm(mark, { force: true }));
  await using folder = await meshFolder(`
  workloads:
  - {name: migrate, command: [sh, -c, "test -e ${mark} || { touch ${mark}; exit 1; }"], restart: onFailure}
  - {name: web, labels: {app: web}, command: [node, web.cjs], ports: [80], after: [migrate]}
`);
  const started = await folder.up();
  assert.equal(started.code, 0, started.stderr);
  const migrate = await folder.running.member("migrate");
  assert.deepEqual([migrate.state, migrate.app?.restarts, migrate.app?.exitCode], ["done", 1, 0]);
  await folder.running.until(({ members }) => members.some(({ job, proxy }) => job && proxy?.state === "stopped"));
  assert.match((await folder.mizzen("ps")).stdout, /^migrate .* done$/m);
});

test("up names the job that others wait for in vain, with its last words", { skip }, async () => {
  await using folder = await meshFolder(`
  workloads:
  - {name: migrate, inject: false, command: [sh, -c, "echo no database; exit 3"], restart: never}
  - {name: web, inject: false, command: [sleep, infinity], after: [migrate]}
`);
  const failed = await folder.up();
  assert.equal(failed.code, 1);
  assert.match(
    failed.stderr,
    /^mizzen: workload "web" cannot be started: it waits for job migrate, which failed; it said: no database$/m,
  );
});

test("readiness of what an app waits for is named while it waits", { skip }, async () => {
  await using folder = await meshFolder(`
  workloads:
  - {name: db, inject: false, command: [sleep, infinity], ports: [5432], readiness: {tcpSocket: {port: 5432}}}
  - {name: web, inject: false, command: [sleep, infinity], after: [db]}
`);
  const failed = await folder.up("--timeout", "25");
  assert.equal(failed.code, 1);
  assert.match(
    failed.stderr,
    /not ready in time: db \(app not ready: nothing listens on port 5432 of \S+ .*\), web \(waits for db \(app not ready: .*\)\)/,
  );
});

const ECHO = `const udp = require("node:dgram").createSocket("udp4");
udp.on("message", (text, peer) => udp.send("udp " + text, peer.port, peer.address)).bind(5353);
let alive = true;
require("node:http").createServer((request, answer) => {
  if (request.url === "/die") alive = false;
  answer.writeHead(request.url === "/live" && !alive ? 500 : 200).end(JSON.stringify(process.env));
}).listen(80);
require("node:http").createServer((_, answer) => answer.end("second port")).listen(81);`;
const ECHO_SERVICES = `
apiVersion: v1
kind: Service
metadata: {name: echo}
spec:
  selector: {app: echo}
  ports: [{name: http, port: 80}, {name: http-two, port: 8081, targetPort: 81}, {name: udp-dns, port: 53, targetPort: 5353, protocol: UDP}]
---
apiVersion: v1
kind: Service
metadata: {name: headless}
spec: {clusterIP: None, selector: {app: echo}, ports: [{name: http, port: 80}]}
`;
const ASK_UDP = `const udp = require("node:dgram").createSocket("udp4");
udp.on("message", (text) => { console.log(String(text)); process.exit(); });
setInterval(() => udp.send("hello", 53, "echo"), 100);
setTimeout(() => process.exit(1), 60000);`;

test("an app that needs more memory than its limit is ended, and that is said", { skip }, async () => {
  await using folder = await meshFolder(`
  exitWhenDone: true
  workloads:
  - {name: hog, inject: false, command: [tail, /dev/zero], restart: never, limits: {memory: 32Mi}}
  - {name: modest, inject: false, command: [sh, -c, "exit 3"], restart: never, limits: {memory: 32Mi}}
`);
  const up = new Begun(["up", folder.path, "--state", folder.state]);
  assert.equal(await up.ended, 137, up.said);
  assert.match(up.said, /job hog failed: it was killed: it needed more than its memory limit of 32Mi\n/);
  assert.match(up.said, /job modest failed: it exited with code 3\n/);
});

test("an app cannot have more processes than its limit", { skip }, async () => {
  await using folder = await meshFolder(`
  exitWhenDone: true
  workloads:
  - name: forks
    inject: false
    command: [sh, -c, "for i in 1 2 3 4 5 6 7 8 9; do sleep 5 & done; wait"]
    restart: never
    limits: {pids: 6}
`);
  const up = new Begun(["up", folder.path, "--state", folder.state]);
  assert.notEqual(await up.ended, 0, up.said);
  assert.match(await readFile(join(folder.state, "logs/forks.default.log"), "utf8"), /[Cc]annot fork/);
});

test("several ports, UDP, variables from files, limits, liveness and callers without a sidecar", {
  skip,
}, async (t) => {
  await using folder = await meshFolder(`
  workloads:
  - name: echo
    labels: {app: echo}
    command: [node, echo.cjs]
    ports: [80, {name: two, port: 81}, {name: dns, port: 5353, protocol: UDP}]
    envFrom: [echo.env]
    env: {B: own}
    readiness: {exec: {command: [curl, -sSf, "http://127.0.0.1/"]}}
    liveness: {httpGet: {path: /live, port: 80}, periodSeconds: 1, timeoutSeconds: 5}
    limits: {memory: 512Mi, cpu: 2, pids: 40}
  - {name: caller, command: [sleep, infinity]}
  - {name: plain, inject: false, command: [sleep, infinity]}
`);
  await folder.add("echo.cjs", ECHO);
  await folder.add("echo.env", 'A="from file"\nB=file\n');
  await folder.add("echo.yaml", ECHO_SERVICES);
  const started = await folder.up();
  assert.equal(started.code, 0, started.stderr);
  const mesh = folder.running;
  await t.test("variables of files, of which the workload's own win", async () => {
    const env = JSON.parse((await mesh.curl("plain", "http://echo/")).body);
    assert.deepEqual([env.A, env.B, env.POD_NAME], ["from file", "own", "echo"]);
  });
  for (const caller of ["caller", "plain"]) {
    await t.test(`${caller} reaches every port by name and address, and UDP as it is`, async () => {
      for (const url of ["http://echo:8081/", "http://10.244.0.10:81/"]) {
        assert.equal((await mesh.curl(caller, url)).body, "second port", url);
      }
      for (const host of ["headless", "echo.headless", "echo.headless.default.svc.cluster.local"]) {
        assert.equal((await mesh.curl(caller, `http://${host}/`)).status, 200, host);
      }
      assert.equal((await mesh.exec(caller, ["node", "-e", ASK_UDP])).stdout, "udp hello\n");
    });
  }
  await t.test("names of services that are added later resolve without a restart", async () => {
    await folder.add(
      "later.yaml",
      ECHO_SERVICES.slice(0, ECHO_SERVICES.indexOf("---")).replace("name: echo", "name: later"),
    );
    for (const caller of ["caller", "plain"]) {
      const retry = ["--retry", "30", "--retry-delay", "1", "--retry-all-errors"];
      const { code, stdout } = await mesh.exec(caller, ["curl", "-sS", "-m", "60", ...retry, "http://later:8081/"]);
      assert.deepEqual([code, stdout], [0, "second port"], caller);
    }
  });
  await t.test("STRICT is closed to callers in plain text, and open to those with a sidecar", async () => {
    const strict =
      "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {name: strict}\nspec: {mtls: {mode: STRICT}}\n";
    await folder.add("strict.yaml", strict);
    const script = "for i in $(seq 600); do curl -sS -m 2 -o /dev/null http://echo/ || exit 0; sleep 0.1; done; exit 1";
    assert.equal((await mesh.exec("plain", ["sh", "-c", script])).code, 0);
    assert.equal((await mesh.curl("caller", "http://echo/")).status, 200);
  });
  await t.test("an app that is not alive any more is started again", async () => {
    await mesh.curl("caller", "http://echo/die");
    await mesh.until(({ members }) =>
      members.some(({ name, app, ready }) => name === "echo" && ready && app?.restarts === 1),
    );
  });
  await t.test("an app with limits is in control groups of its own", async () => {
    const { pid } = (await mesh.member("echo")).app ?? {};
    assert.match(await readFile(`/proc/${pid}/cgroup`, "utf8"), /mizzen-[0-9a-f]{6}\/echo\.default/);
  });
});
