/**
 * Meshes of an account that is not root, with real traffic: once with nothing but the account itself, once with the
 * accounts that /etc/subuid gives to it.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import test, { type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { eventually } from "../../../test/support/fake-control-plane.ts";
import { machineState } from "../../../test/support/mesh-folder.ts";
import { type Finished, MIZZEN, meshUnavailable } from "../../../test/support/mesh-run.ts";
import { ANYBODY, obstacle, READ } from "../host/readable.ts";
import type { MeshStatus } from "../status/status.ts";

const ROOT = resolve(import.meta.dirname, "../../..");
const FIRST_SUBORDINATE = 300_000;

async function unavailable(): Promise<string | false> {
  const reason = meshUnavailable();
  if (reason !== false) return reason;
  const closed = await obstacle(join(ROOT, "dist/mizzen.cjs"), ANYBODY, READ);
  return closed === undefined ? false : `needs a checkout that other accounts may read: "${closed}" is closed to them`;
}

/** An account that is not root, with a home of its own; nobody needs to have given it a name. */
class Person implements AsyncDisposable {
  readonly uid = randomInt(200_000, 290_000);
  readonly home: string;
  /** Programs before all others. */
  readonly bin: string;
  readonly #end = new AbortController();
  #world: ChildProcess | undefined;
  #mapping: Promise<void> | undefined;

  constructor(home: string) {
    this.home = home;
    this.bin = join(home, "bin");
  }

  static async make(homeMode: number): Promise<Person> {
    const person = new Person(await mkdtemp(join(tmpdir(), "person-")));
    await mkdir(person.bin);
    for (const path of [person.home, person.bin]) await chown(path, person.uid, person.uid);
    await chmod(person.home, homeMode);
    return person;
  }

  /** Gives other accounts to this one, as an administrator would, in a view of the machine that nobody else has. */
  async giveAccounts(): Promise<void> {
    const file = join(this.home, "subids");
    await writeFile(file, `${this.uid}:${FIRST_SUBORDINATE}:65536\n`);
    const script = 'mount --bind "$1" /etc/subuid; mount --bind "$1" /etc/subgid; echo; exec cat';
    this.#world = spawn("unshare", ["--mount", "sh", "-c", script, "sh", file], { stdio: ["pipe", "pipe", "inherit"] });
    await once(this.#world.stdout ?? this.#world, "data");
    for (const kind of ["uid", "gid"]) await this.#addMapper(kind);
    this.#mapping = this.#map(this.#end.signal);
  }

  /** Stands for the set-user-ID program: asks us, who are root, to write the map. */
  async #addMapper(kind: string): Promise<void> {
    const path = join(this.bin, `new${kind}map`);
    const asked = join(this.home, `${kind}-of-$1`);
    const script = `echo "$*" > ${asked}.new && mv ${asked}.new ${asked} && while [ -e ${asked} ]; do sleep 0.01; done`;
    await writeFile(path, `#!/bin/sh\n${script}\n`);
    await chmod(path, 0o755);
  }

  /** Writes the maps that are asked for, until the signal aborts. */
  async #map(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const name of await readdir(this.home)) {
        const [, kind] = /^([ug]id)-of-\d+$/.exec(name) ?? [];
        if (kind === undefined) continue;
        const file = join(this.home, name);
        const [pid, ...map] = (await readFile(file, "utf8")).trim().split(" ");
        await writeFile(`/proc/${pid}/${kind}_map`, `${map.slice(0, 3).join(" ")}\n${map.slice(3).join(" ")}\n`);
        await rm(file);
      }
      await delay(10);
    }
  }

  async mizzen(...args: readonly string[]): Promise<Finished> {
    const view = this.#world === undefined ? [] : ["nsenter", `--target=${this.#world.pid}`, "--mount", "--wd", "--"];
    const become = ["setpriv", `--reuid=${this.uid}`, `--regid=${this.uid}`, "--clear-groups"];
    const [program = "", ...rest] = [...view, ...become, MIZZEN, ...args];
    const env = { HOME: this.home, PATH: `${this.bin}:/usr/bin:/bin` };
    const child = spawn(program, rest, { cwd: ROOT, env, stdio: ["ignore", "pipe", "pipe"] });
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    return { code: Number(code), stdout, stderr };
  }

  /** Numbers of the processes of this account and of those given to it. */
  async processes(): Promise<readonly string[]> {
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    const found = await Promise.all(
      pids.map(async (pid) => {
        const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
        const uid = Number(/^Uid:\t(\d+)/m.exec(status)?.[1] ?? 0);
        const ours = uid === this.uid || (uid >= FIRST_SUBORDINATE && uid < FIRST_SUBORDINATE + 65_536);
        return ours && !status.includes("State:\tZ") ? [pid] : [];
      }),
    );
    return found.flat();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.mizzen("down", "--mesh", "httpbin");
    this.#world?.kill("SIGKILL");
    this.#end.abort();
    await this.#mapping;
    await rm(this.home, { recursive: true, force: true });
  }
}

function call(address: string): Promise<number | undefined> {
  return new Promise((done, failed) => {
    const [host = "", port] = address.split(":");
    const headers = { host: "httpbin.example.com" };
    request({ host, port, path: "/status/200", headers }, (answer) => {
      answer.resume();
      done(answer.statusCode);
    })
      .once("error", failed)
      .end();
  });
}

const skip = await unavailable();

/** What holds however many accounts there are. */
async function everything(t: TestContext, person: Person, accounts: "one" | "many", sentence: RegExp): Promise<void> {
  const before = await machineState();
  const started = await person.mizzen("up", "samples/httpbin", "--detach", "--free-ports");
  assert.equal(started.code, 0, started.stderr);
  assert.match(started.stderr, sentence);

  await t.test("ps from another terminal finds it; the machine is as it was", async () => {
    const { stdout } = await person.mizzen("ps", "-o", "json");
    const status: MeshStatus = JSON.parse(stdout);
    assert.deepEqual([status.phase, status.members.every(({ ready }) => ready)], ["ready", true]);
    assert.equal(status.stateFolder, join(person.home, ".local/state/mizzen/httpbin"));
    assert.deepEqual(await machineState(), before);
    assert.equal(await call(status.published[0]?.address ?? ""), 200, "the published port is the machine's");
  });

  await t.test("calls go through both sidecars, with mutual TLS", async () => {
    const { stdout, stderr } = await person.mizzen("exec", "sleep", "--", "curl", "-sS", "http://httpbin:8000/headers");
    assert.match(
      stdout,
      /By=spiffe:\/\/cluster\.local\/ns\/default\/sa\/httpbin;.*URI=spiffe:[^"]*\/sa\/sleep/,
      stderr,
    );
    await eventually("the call is logged", async () =>
      /"GET \/headers HTTP\/1\.1" 200/.test((await person.mizzen("logs", "sleep", "--proxy")).stdout),
    );
    const own = await person.mizzen("exec", "httpbin", "--", "curl", "-sS", "http://httpbin.default:8000/headers");
    assert.match(own.stdout, /URI=spiffe:[^"]*\/sa\/httpbin/, `a workload that calls itself: ${own.stderr}`);
  });

  await t.test("apps have their own users where there are some, and cannot change their network", async () => {
    const { stdout } = await person.mizzen("exec", "sleep", "--", "sh", "-c", "id -u; ip link set eth0 down 2>&1");
    assert.match(stdout, accounts === "one" ? /^65534\n.*not permitted/s : /^[3-5]\d{4}\n.*not permitted/s);
    const other = await person.mizzen("exec", "httpbin", "--", "id", "-u");
    assert.equal(stdout.startsWith(other.stdout), accounts === "one");
  });

  await t.test("apps see neither the processes of others nor the state folder, and get no rights", async () => {
    const script = `cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'
find ${join(person.home, ".local/state/mizzen/httpbin")} -type f -o -type s
grep -E '^(NoNewPrivs|CapEff)' /proc/self/status`;
    const { stdout } = await person.mizzen("exec", "sleep", "--", "sh", "-c", script);
    assert.match(stdout, /^POD_NAME=sleep$/m);
    assert.doesNotMatch(stdout, /POD_NAME=httpbin|envoy-rev|pilot-|\/ca\/|\/issuer\/|\/members\//);
    assert.match(stdout, /^NoNewPrivs:\t1$/m);
    assert.match(stdout, /^CapEff:\t0+$/m);
  });

  await t.test("run joins it, as the person", async () => {
    const script = "touch mine; curl -sS http://httpbin:8000/headers; exit 6";
    const args = ["--workdir", person.home, "--service-account", "batch", "--", "sh", "-c", script];
    const { code, stdout, stderr } = await person.mizzen("run", ...args);
    assert.equal(code, 6, stderr);
    assert.match(stdout, /URI=spiffe:[^"]*\/sa\/batch/);
    assert.equal((await stat(join(person.home, "mine"))).uid, person.uid);
  });

  await t.test("a runner that is killed leaves what `down` removes", async () => {
    const { stdout } = await person.mizzen("ps", "-o", "json");
    const status: MeshStatus = JSON.parse(stdout);
    process.kill(status.runner.pid, "SIGKILL");
    const { code, stderr } = await person.mizzen("down", "--mesh", "httpbin");
    assert.equal(code, 0, stderr);
    assert.deepEqual(await person.processes(), []);
    assert.deepEqual((await readdir(status.stateFolder)).sort(), [".mizzen", "ca", "issuer", "logs"]);
  });

  await t.test("it comes up again and goes down; nothing of it is left", async () => {
    const again = await person.mizzen("up", "samples/httpbin", "--detach", "--free-ports");
    assert.equal(again.code, 0, again.stderr);
    assert.equal((await person.mizzen("down")).code, 0);
    assert.deepEqual(await person.processes(), []);
    assert.equal((await person.mizzen("ps")).code, 4);
    assert.deepEqual(await machineState(), before);
  });
}

test("a mesh without root, for an account that has no others", { skip }, async (t) => {
  await using person = await Person.make(0o700);
  await everything(t, person, "one", /^without root: apps run under your own account/m);
});

test("a mesh without root, for an account that was given others", { skip }, async (t) => {
  await using person = await Person.make(0o755);
  await person.giveAccounts();
  await everything(t, person, "many", /^without root: accounts of this mesh are those that \/etc\/subuid gives you/m);
});
