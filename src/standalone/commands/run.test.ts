/** `mizzen run`: any process as a member of a running mesh, for as long as it lasts. */
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Begun } from "../../../test/support/mesh-folder.ts";
import { type Finished, meshUnavailable, mizzen, type RunningMesh, upMesh } from "../../../test/support/mesh-run.ts";
import { namespacesOf } from "../host/namespaces.ts";
import { memberOf, type RunRequest } from "./run.ts";

const REQUEST: RunRequest = {
  name: undefined,
  namespace: undefined,
  serviceAccount: undefined,
  labels: undefined,
  ports: [],
  env: {},
  workdir: "/srv",
  user: undefined,
  inject: true,
  command: ["true"],
  timeoutMs: 1000,
};

test("memberOf() has the defaults of a workload, and a name that nobody has", () => {
  const member = memberOf(REQUEST, () => "abc123");
  assert.deepEqual(
    [member.name, member.namespace, member.serviceAccount, member.labels, member.proxy],
    ["run-abc123", "default", "default", { app: "run-abc123" }, "sidecar"],
  );
  assert.equal(member.readiness, undefined);
  assert.notEqual(memberOf(REQUEST).name, memberOf(REQUEST).name);
});

test("memberOf() takes what it is told, and is ready when its first port is", () => {
  const asked = { name: "web", namespace: "shop", serviceAccount: "web", labels: { app: "x" }, ports: [8080, 9090] };
  const member = memberOf({ ...REQUEST, ...asked, inject: false });
  assert.deepEqual([member.name, member.namespace, member.serviceAccount], ["web", "shop", "web"]);
  assert.deepEqual([member.labels, member.proxy, member.readiness?.port], [{ app: "x" }, "none", 8080]);
});

test("memberOf() names every flag that cannot be", () => {
  const wrong = {
    name: "Web",
    namespace: "a.b",
    labels: { app: "a b" },
    ports: [15001],
    env: { "": "x" },
    user: "1337",
  };
  assert.throws(
    () => memberOf({ ...REQUEST, ...wrong, serviceAccount: "A", command: [""] }),
    (error: Error) => {
      for (const flag of ["--name", "--namespace", "--service-account", "--label app", "--port", "--env", "--user"]) {
        assert.ok(error.message.includes(`${flag} `), `${flag} in ${error.message}`);
      }
      assert.match(error.message, /the command needs a program/);
      assert.doesNotMatch(error.message, /spec\./);
      return true;
    },
  );
});

test("run says that no such mesh is up", { skip: meshUnavailable() }, async () => {
  const { code, stderr } = await mizzen(["run", "--mesh", "not-there", "--", "true"]);
  assert.equal(code, 4);
  assert.match(stderr, /^mizzen: Mesh "not-there" is not up/);
});

function run({ stateFolder }: RunningMesh, ...args: readonly string[]): Promise<Finished> {
  return mizzen(["run", "--state", stateFolder, ...args]);
}

/** Whoever is in the mesh beside those of its file. */
async function guests(mesh: RunningMesh): Promise<readonly string[]> {
  const { id, members } = await mesh.status();
  const known = new Set(["istiod", "istio-ingressgateway", "httpbin", "sleep"]);
  const folders = await Promise.all(
    ["members", "registry", "logs"].map((name) => readdir(join(mesh.stateFolder, name))),
  );
  const names = [...members.map(({ name }) => name), ...folders.flat(), ...(await namespacesOf(id))];
  return names.filter((name) => /^(mizzen-[0-9a-f]+-)?(guest|run-)/.test(name) && !known.has(name));
}

/** What the mesh says of itself is written down a moment after it is so. */
async function assertNoGuests(mesh: RunningMesh): Promise<void> {
  for (let i = 0; i < 600 && (await guests(mesh)).length > 0; i++) await delay(100);
  assert.deepEqual(await guests(mesh), []);
}

test("run in a mesh", { skip: meshUnavailable() }, async (t: TestContext) => {
  await using mesh = await upMesh("samples/httpbin");

  await t.test("the server sees its identity; its exit code and output are passed on; nothing is left", async () => {
    const script = "curl -sS http://httpbin:8000/headers; echo oops >&2; exit 7";
    const { code, stdout, stderr } = await run(mesh, "--service-account", "batch", "--", "sh", "-c", script);
    assert.equal(code, 7, stderr);
    assert.match(stdout, /URI=spiffe:\/\/cluster\.local\/ns\/default\/sa\/batch/);
    assert.equal(stderr, "oops\n");
    await assertNoGuests(mesh);
  });

  await t.test("signals reach it, and one that ends it is an exit code", async () => {
    const trap = 'trap "exit 5" TERM; echo up; while :; do sleep 0.05; done';
    const patient = new Begun(["run", "--state", mesh.stateFolder, "--", "sh", "-c", trap]);
    await patient.until(/up/);
    patient.child.kill("SIGTERM");
    assert.equal(await patient.ended, 5);
    assert.equal((await run(mesh, "--", "sh", "-c", "kill -KILL $$")).code, 137);
  });

  await t.test("variables, folder, user and place are what was asked for", async () => {
    const script = "echo $POD_NAME $COLOUR; pwd; id -u; cat /etc/hostname >/dev/null; uname -n";
    const flags = ["--name", "guest", "--env", "COLOUR=a=b", "--workdir", "/tmp", "--user", "nobody", "--no-inject"];
    const { stdout, stderr } = await run(mesh, ...flags, "--", "sh", "-c", script);
    assert.equal(stdout, "guest a=b\n/tmp\n65534\nguest\n", stderr);
  });

  await t.test("others call it by a Service while it listens; kill -9 leaves nothing", async () => {
    const server = 'require("node:http").createServer((_, a) => a.end("guest")).listen(80)';
    const labels = ["--label", "app=httpbin", "--label", "version=v1"];
    const args = ["run", "--state", mesh.stateFolder, "--name", "guest-web", ...labels, "--port", "80"];
    const guest = new Begun([...args, "--", process.execPath, "-e", server]);
    await mesh.until(({ members }) => members.some(({ name, ready }) => name === "guest-web" && ready));
    let answered = false;
    for (let i = 0; i < 100 && !answered; i++) {
      answered = (await mesh.curl("sleep", "http://httpbin:8000/status/200")).body === "guest";
    }
    assert.ok(answered, "no call of a hundred reached it");

    const taken = await run(mesh, "--name", "guest-web", "--", "true");
    assert.equal(taken.code, 2);
    assert.match(taken.stderr, /the mesh has a member of this name; choose another/);

    guest.child.kill("SIGKILL");
    // The runner finds out by itself, and takes its time to remove everything.
    await assertNoGuests(mesh);
    assert.equal((await mesh.curl("sleep", "http://httpbin:8000/status/200")).status, 200);
  });

  await t.test("a command that does not exist is told, and takes nobody's place", async () => {
    const { code, stderr } = await run(mesh, "--name", "guest", "--", "no-such-command");
    assert.equal(code, 2);
    assert.match(stderr, /^mizzen: Cannot run it in the mesh: command "no-such-command" is not found in /);
    await assertNoGuests(mesh);
  });

  await t.test("several at once; each can call at the very moment it starts", async () => {
    const call = [
      "--",
      "curl",
      "-sS",
      "-m",
      "60",
      "-o",
      "/dev/null",
      "-w",
      "%{http_code}",
      "http://httpbin:8000/status/200",
    ];
    const answers = await Promise.all(Array.from({ length: 6 }, () => run(mesh, ...call)));
    assert.deepEqual(
      answers.map(({ stdout, stderr }) => stdout + stderr),
      answers.map(() => "200"),
    );
    await assertNoGuests(mesh);
  });
});
