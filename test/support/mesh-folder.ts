/** Folders with small meshes of their own, for tests that change them or break them. */

import { type ChildProcess, spawn } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { runCommand } from "#standalone/host/command.ts";
import { type Finished, MIZZEN, mizzen, RunningMesh } from "./mesh-run.ts";

const HEAD = "apiVersion: mizzen.dev/v1alpha1\nkind: Mesh\nmetadata: {name: NAME}\nspec:\n";

/** Answers every call with `web`, the name of the pod and the variable GREETING. */
const WEB = `require("node:http").createServer((q, a) => {
  a.end(["web", process.env.POD_NAME, process.env.GREETING].filter(Boolean).join(" "));
}).listen(Number(process.env.PORT ?? 80))`;
const SERVICE = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 8000, targetPort: 80}]}
`;

/** One workload with a sidecar behind a Service, and one without. */
export const WEB_SPEC = `
  workloads:
  - name: web
    labels: {app: web}
    command: [node, web.cjs]
    ports: [80]
    readiness: {httpGet: {path: /, port: 80}}
  - {name: plain, inject: false, command: [sleep, infinity]}
`;

/** MESH_AGENTS=shared plays all of this with one agent for all proxies. */
const AGENTS = process.env.MESH_AGENTS === undefined ? [] : ["--agents", process.env.MESH_AGENTS];

export class MeshFolder implements AsyncDisposable {
  readonly root: string;
  readonly path: string;
  /** What the state folder lies in: a test may mount a disk of its own there. */
  readonly disk: string;
  readonly state: string;
  readonly name: string;

  constructor(root: string) {
    this.root = root;
    this.path = join(root, "mesh");
    this.disk = join(root, "disk");
    this.state = join(this.disk, "state");
    this.name = `up-${root.slice(-6).toLowerCase()}`;
  }

  /** Writes mesh.yaml with this spec. */
  async write(spec: string): Promise<void> {
    await writeFile(join(this.path, "mesh.yaml"), HEAD.replace("NAME", this.name) + spec);
  }

  async add(file: string, text: string): Promise<void> {
    await writeFile(join(this.path, file), text);
  }

  up(...args: readonly string[]): Promise<Finished> {
    return mizzen(["up", this.path, "--detach", "--state", this.state, ...AGENTS, ...args]);
  }

  /** Any other command about this mesh. */
  mizzen(command: string, ...args: readonly string[]): Promise<Finished> {
    return mizzen([command, "--state", this.state, ...args]);
  }

  /** A command about this mesh that goes on until it is told to stop. */
  begin(command: string, ...args: readonly string[]): Begun {
    return new Begun([command, "--state", this.state, ...args]);
  }

  get running(): RunningMesh {
    return new RunningMesh(this.name, this.state);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await mizzen(["down", this.path, "--state", this.state]);
    await rm(this.root, { recursive: true, force: true });
  }
}

/** A command that runs. */
export class Begun {
  readonly child: ChildProcess;
  readonly ended: Promise<number | NodeJS.Signals | null>;
  /** All that it printed so far, to either side. */
  said = "";

  constructor(args: readonly string[]) {
    this.child = spawn(MIZZEN, args, { stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding("utf8").on("data", (chunk: string) => {
        this.said += chunk;
      });
    }
    this.ended = new Promise((resolve) => this.child.once("close", (code, signal) => resolve(code ?? signal)));
  }

  /** Waits until it has printed something. */
  async until(expected: RegExp, timeoutMs = 60_000): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    while (!expected.test(this.said)) {
      if (this.child.exitCode !== null || Date.now() > deadline) throw new Error(`no ${expected} in:\n${this.said}`);
      await delay(10);
    }
  }
}

/** A folder with a mesh of its own: mesh.yaml with this spec, a Service `web` and an app for it. */
export async function meshFolder(spec: string): Promise<MeshFolder> {
  const folder = new MeshFolder(await mkdtemp(join(tmpdir(), "up-")));
  await mkdir(folder.path);
  for (const path of [folder.root, folder.path]) await chmod(path, 0o755);
  await folder.write(spec);
  await folder.add("service.yaml", SERVICE);
  await folder.add("web.cjs", WEB);
  return folder;
}

/** The ways out of other meshes that are up at the same time. */
const OTHERS = /^.*\bmze-.*\n/gm;

/** All of the machine that a mesh must leave as it is, while it is up and afterwards. */
export async function machineState(): Promise<Record<string, string>> {
  const run = async (...argv: string[]) => (await runCommand({ argv })).replaceAll(OTHERS, "");
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
  };
}

/** Everything of one mesh that is on the machine; empty when nothing is. Names are those of the id and the state folder. */
export async function tracesOf(id: string, stateFolder: string): Promise<readonly string[]> {
  const folders = ["/run/netns", "/etc/netns", "/run/mizzen", ...(await groupFolders())];
  const names = await Promise.all(
    folders.map(async (folder) => {
      const found = await readdir(folder).catch(() => []);
      return found.filter((name) => name.includes(id)).map((name) => join(folder, name));
    }),
  );
  const mounts = (await readFile("/proc/self/mounts", "utf8")).split("\n");
  return [
    ...names.flat(),
    ...mounts.filter((line) => line.includes(`mizzen-${id}`) || line.includes(stateFolder)),
    ...(await processesAbout(stateFolder)).map((line) => `process ${line}`),
  ];
}

async function groupFolders(): Promise<readonly string[]> {
  const lines = (await readFile("/proc/self/mounts", "utf8")).split("\n").map((line) => line.split(" "));
  return lines.filter(([, , type]) => type?.startsWith("cgroup")).map(([, folder = ""]) => folder);
}

/** Processes that work in a folder, or have it in their command line or variables; but for this test itself. */
export async function processesAbout(folder: string): Promise<readonly string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const texts = await Promise.all([
        ...["cmdline", "environ"].map((file) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "")),
        readlink(`/proc/${pid}/cwd`).catch(() => ""),
      ]);
      const about = texts.some((text) => text.includes(folder));
      return about ? [`${pid} ${texts[0]?.replaceAll("\0", " ").slice(0, 200)}`] : [];
    }),
  );
  return found.flat();
}
