/** A workload, or a proxy, that an attacker has taken over: what it can see and do of the rest of a one-machine mesh. */
import assert from "node:assert/strict";
import { readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { runCommand } from "#standalone/host/command.ts";
import { type MeshFolder, meshFolder, processesAbout, tracesOf } from "../../support/mesh-folder.ts";
import { meshUnavailable, type RunningMesh } from "../../support/mesh-run.ts";

const SPEC = `
  workloads:
  - name: web
    labels: {app: web}
    command: [node, web.cjs]
    env: {GREETING: "the secret of web"}
    ports: [80]
    readiness: {httpGet: {path: /, port: 80}}
  - {name: other, command: [sleep, infinity], env: {GREETING: "the secret of other"}}
  - {name: named, inject: false, user: nobody, command: [sleep, infinity]}
`;

interface Process {
  readonly pid: number;
  readonly uid: number;
  readonly status: string;
  readonly args: string;
}

describe("isolation on one machine; excess privilege (CVE-2022-21701, ISTIO-SECURITY-2023-005)", {
  skip: meshUnavailable(),
}, () => {
  let folder: MeshFolder;
  let mesh: RunningMesh;
  let processes: readonly Process[];

  before(async () => {
    folder = await meshFolder(SPEC);
    const { code, stderr } = await folder.up();
    assert.equal(code, 0, stderr);
    mesh = folder.running;
    processes = await processesOf(await pidsIn(mesh));
  });

  after(async () => {
    await folder?.[Symbol.asyncDispose]();
  });

  const find = (...words: readonly string[]) => {
    const found = processes.filter(({ args }) => words.every((word) => args.includes(word)) && !/^nsenter/.test(args));
    return found[0] ?? assert.fail(`no process ${words.join(" ")}`);
  };
  const appOf = async (name: string) => {
    const { app } = await mesh.member(name);
    return processes.find(({ pid }) => pid === app?.pid) ?? assert.fail(`no app of ${name}`);
  };
  const sh = (name: string, script: string) => mesh.exec(name, ["sh", "-c", script]);

  /** Runs a script as whoever took over a process: with its user and namespaces, and without what it never had. */
  const as = async ({ pid, uid }: Process, script: string) => {
    const enter = ["nsenter", `--target=${pid}`, "--net", "--pid", "--mount", "--ipc", "--uts", "--wdns=/", "--"];
    const become = [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--no-new-privs", "--bounding-set=-all"];
    return runCommand({ argv: [...enter, "setpriv", ...become, "--", "sh", "-c", script] });
  };

  test("every app has a user of its own, and no way to more rights", async () => {
    const [web, other, named] = await Promise.all(["web", "other", "named"].map(appOf));
    assert.equal(new Set([web?.uid, other?.uid, 1337, 65_534, 0]).size, 5);
    assert.equal(named?.uid, 65_534, "the user that mesh.yaml names");
    for (const app of [web, other, named]) hasNoRights(app);
    assert.equal((await sh("web", "id -u; id -un")).stdout, `${web?.uid}\nworkload\n`);
  });

  test("an app sees its own processes alone", async () => {
    const { stdout } = await sh("web", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
    assert.match(stdout, /node web\.cjs/, "exec sees the app");
    assert.doesNotMatch(stdout, /pilot-agent|envoy|pilot-discovery/);
    const [host, inside] = [(await appOf("other")).pid, (await sh("web", "ls /proc")).stdout.split("\n")];
    assert.ok(!inside.includes(String(host)), "the other app by its number");
    const environments = await sh("web", "cat /proc/[0-9]*/environ | tr '\\0' '\\n'");
    assert.match(environments.stdout, /the secret of web/);
    assert.doesNotMatch(environments.stdout, /the secret of other/);
  });

  test("an app cannot signal another, nor its own proxy", async () => {
    for (const victim of [await appOf("other"), find("pilot-agent", "proxy"), find("envoy-rev")]) {
      const { code } = await sh("web", `kill -0 ${victim.pid}`);
      assert.notEqual(code, 0, victim.args);
    }
    // It reaches the app beside it, which is started again.
    const { app: before } = await mesh.member("web");
    await sh("web", "kill -9 -1");
    await mesh.until(({ members }) =>
      members.some(({ name, app, ready }) => name === "web" && ready && app?.pid !== before?.pid),
    );
    const { app } = await mesh.member("other");
    assert.equal(app?.restarts, 0);
    assert.equal(app?.pid, (await appOf("other")).pid);
    processes = await processesOf(await pidsIn(mesh));
  });

  test("an app reads nothing of the state folder", async () => {
    const { stdout } = await sh("web", `find ${mesh.stateFolder} -type f 2>/dev/null; cat ${tokenOf("web")} 2>&1`);
    assert.doesNotMatch(stdout, /token\n|key|root-cert|socket|eyJ/);
  });

  test("a proxy has no rights, and sees its own processes and files alone", async () => {
    const envoy = find("envoy-rev");
    const agent = find("pilot-agent", "proxy");
    for (const process of [envoy, agent]) {
      assert.equal(process.uid, 1337);
      hasNoRights(process);
    }
    const owner = await ownerOf(envoy);
    const stranger = owner === "web" ? "other" : "web";
    const seen = await as(envoy, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
    assert.match(seen, /envoy-rev/);
    assert.doesNotMatch(seen, /pilot-discovery|web\.cjs|run-mesh/);
    assert.equal(seen.match(/envoy-rev\.json/g)?.length, 1, "one Envoy");
    const files = await as(envoy, `find ${mesh.stateFolder} -type f -o -type s 2>/dev/null; true`);
    assert.match(files, new RegExp(`members/${owner}\\.default/etc/hosts`));
    assert.doesNotMatch(files, new RegExp(`/ca/|/issuer/|/registry/|${stranger}\\.default|control\\.sock|/logs/`));
    assert.match(await as(envoy, `cat ${tokenOf(owner)}`), /^eyJ/, "its own token");
  });

  test("user 1337 reads no key, token or state even outside of any namespace", async () => {
    const files = [tokenOf("web"), tokenOf("other"), ...(await filesBelow(join(mesh.stateFolder, "ca")))];
    const folders = ["ca", "issuer", "registry", "applied", "control-plane", "members", "logs"];
    const script = [
      ...files.map((file) => `cat ${file}`),
      ...folders.map((name) => `ls ${join(mesh.stateFolder, name)}`),
    ]
      .map((command) => `${command} >/dev/null 2>&1 && echo "${command}"`)
      .join("\n");
    assert.ok(files.length > 3);
    const identity = ["--reuid=1337", "--regid=1337", "--clear-groups"];
    assert.equal(await runCommand({ argv: ["setpriv", ...identity, "--", "sh", "-c", `${script}\ntrue`] }), "");
  });

  test("the control plane has a user of its own, which alone may read the authority's key", async () => {
    const discovery = find("pilot-discovery");
    hasNoRights(discovery);
    const others = processes.filter(({ uid, pid }) => uid === discovery.uid && pid !== discovery.pid);
    assert.deepEqual(
      others.filter(({ args }) => !args.startsWith("sleep infinity")),
      [],
    );
    const listing = await runCommand({ argv: ["stat", "-c", "%a %u", join(mesh.stateFolder, "ca")] });
    assert.equal(listing.trim(), `700 ${discovery.uid}`);
    for (const file of (await filesBelow(join(mesh.stateFolder, "ca"))).filter((name) => /key/.test(name))) {
      assert.equal((await runCommand({ argv: ["stat", "-c", "%a %u", file] })).trim(), `600 ${discovery.uid}`, file);
    }
    const seen = await as(discovery, `find ${mesh.stateFolder} -type f 2>/dev/null; true`);
    assert.match(seen, /ca\/.*key/);
    assert.doesNotMatch(seen, /istio-token|issuer/);
  });

  test("nothing of the mesh runs as root but the runner and what waits outside of a place", () => {
    const roots = processes.filter(({ uid }) => uid === 0).map(({ args }) => args);
    assert.deepEqual(
      roots.filter((args) => !/^nsenter --net|mizzen\.cjs run-mesh/.test(args)),
      [],
    );
  });

  test("a workload keeps its user while the mesh runs, also when its keeper is killed", async () => {
    const before = await appOf("web");
    const keeper = await keeperOf(before.pid);
    process.kill(keeper, "SIGKILL");
    await mesh.until(({ members }) =>
      members.some(
        ({ name, app, ready }) => name === "web" && ready && app?.pid !== undefined && app.pid !== before.pid,
      ),
    );
    assert.match((await sh("web", "id -u; ls /proc")).stdout, new RegExp(`^${before.uid}$`, "m"));
  });

  test("`down` leaves no process, mount or file of a runner that was killed", async () => {
    const { id } = await mesh.status();
    await mesh.kill("runner");
    const { code, stderr } = await mesh.down();
    assert.equal(code, 0, stderr);
    assert.deepEqual(await tracesOf(id, mesh.stateFolder), []);
    assert.deepEqual(await processesAbout(mesh.stateFolder), []);
  });

  function tokenOf(name: string): string {
    return join(mesh.stateFolder, "members", `${name}.default/proxy/var/run/secrets/tokens/istio-token`);
  }
});

function hasNoRights(process: Process | undefined): void {
  assert.ok(process);
  assert.match(process.status, /^NoNewPrivs:\t1$/m, process.args);
  for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) {
    assert.match(process.status, new RegExp(`^${set}:\t0+$`, "m"), process.args);
  }
}

/** Numbers of the processes in the mesh's networks. */
async function pidsIn(mesh: RunningMesh): Promise<readonly number[]> {
  const { id } = await mesh.status();
  const listed = await runCommand({ argv: ["sh", "-c", `stat -Lc %i /run/netns/mizzen-${id}-*`] });
  const names = new Set(
    listed
      .trim()
      .split("\n")
      .map((inode) => `net:[${inode}]`),
  );
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => (names.has(await readlink(`/proc/${pid}/ns/net`).catch(() => "")) ? [Number(pid)] : [])),
  );
  return found.flat();
}

async function processesOf(pids: readonly number[]): Promise<readonly Process[]> {
  const found = await Promise.all(
    pids.map(async (pid) => {
      const [status, line] = await Promise.all(
        ["status", "cmdline"].map((file) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "")),
      );
      const uid = Number(/^Uid:\t(\d+)/m.exec(status ?? "")?.[1]);
      return line === "" ? [] : [{ pid, uid, status: status ?? "", args: (line ?? "").replaceAll("\0", " ") }];
    }),
  );
  return found.flat();
}

async function ownerOf({ pid }: Process): Promise<string> {
  return (await runCommand({ argv: ["nsenter", `--target=${pid}`, "--uts", "hostname"] })).trim();
}

/** The first process of the process namespace. */
async function keeperOf(pid: number): Promise<number> {
  const own = await readlink(`/proc/${pid}/ns/pid`);
  for (const name of (await readdir("/proc")).filter((entry) => /^\d+$/.test(entry))) {
    if ((await readlink(`/proc/${name}/ns/pid`).catch(() => "")) !== own) continue;
    if (/^NSpid:\t\d+\t1$/m.test(await readFile(`/proc/${name}/status`, "utf8").catch(() => ""))) return Number(name);
  }
  return assert.fail(`no keeper for ${pid}`);
}

async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}
