/** Everything that would make a start fail half-way, found before it begins. */
import { access, copyFile, readdir, readFile, realpath, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { MeshError } from "#lib/mesh-error.ts";
import { findLayout } from "../host/control-groups.ts";
import { ignoring } from "../host/ignoring.ts";
import { ANYBODY, EXECUTE, isReadableTree, obstacle, READ } from "../host/readable.ts";
import { type Mesh, placeOf } from "../mesh/mesh.ts";
import { controllersOf, type GroupLayout } from "../plan/control-groups.ts";
import { type Account, NOBODY } from "../plan/enter.ts";
import type { Desired } from "../plan/plan.ts";
import { type Programs, searchPath } from "../plan/process.ts";
import { accountsOf } from "./accounts.ts";
import { commandProblem } from "./find-command.ts";
import { placeFile, placeWorkingFolder } from "./runtime-files.ts";

/** Programs as they are installed. */
export interface InstalledPrograms {
  readonly node: string;
  readonly envoy: string;
  readonly agentBundle: string;
  readonly discoveryBundle: string;
}

/** Tools of the machine, and the Debian package that has them. */
export const TOOLS: Readonly<Record<string, string>> = {
  ip: "iproute2",
  "iptables-restore": "iptables",
  nsenter: "util-linux",
  unshare: "util-linux",
  setpriv: "util-linux",
  mount: "mount",
};

export interface Machine {
  /** Whom we run as. */
  readonly uid: number | undefined;
  /** Where commands are looked up. */
  readonly path: string;
}

/** Root, and the tools that every mesh needs. */
export async function checkMachine({ uid, path }: Machine): Promise<void> {
  if (uid !== 0) {
    throw new MeshError(
      "NOT_ROOT",
      "Cannot start a mesh without root: it makes network namespaces and capture rules; run it with sudo",
    );
  }
  for (const [tool, debianPackage] of Object.entries(TOOLS)) {
    const places = path.split(":").map((folder) => access(join(folder, tool)));
    if ((await Promise.allSettled(places)).some(({ status }) => status === "fulfilled")) continue;
    throw new MeshError(
      "TOOL_MISSING",
      `Cannot start a mesh without "${tool}": install it (Debian: apt-get install ${debianPackage})`,
    );
  }
  if ((await ignoring(["ENOENT"], () => stat("/etc/resolv.conf"))) === undefined) {
    throw new MeshError("TOOL_MISSING", "Cannot start a mesh without /etc/resolv.conf: members need it to be there");
  }
}

/** Files that the mesh names, and the accounts in it. */
export async function checkMesh(mesh: Mesh): Promise<Pick<Desired, "accounts" | "privateConfig">> {
  const accounts = accountsOf(mesh, await readFile("/etc/passwd", "utf8"));
  for (const path of mesh.config) {
    if (await isMissing(path)) {
      throw new MeshError(
        "CONFIG_MISSING",
        `Cannot use "${mesh.file}": spec.config names "${path}", which does not exist`,
      );
    }
  }
  for (const member of mesh.members) {
    const { workload, app } = member;
    const info = app && (await ignoring(["ENOENT", "ENOTDIR"], () => stat(app.workingDir)));
    if (app !== undefined && info?.isDirectory() !== true) {
      throw new MeshError(
        "WORKING_DIR_MISSING",
        `${placeOf(mesh, member)}Cannot run workload "${workload}": there is no folder "${app.workingDir}"; make it, or correct workingDir`,
      );
    }
  }
  const readable = await Promise.all(mesh.config.map(async (path) => isReadableTree(await realpath(path), ANYBODY)));
  return { accounts, privateConfig: readable.includes(false) };
}

/** Where the limits of the mesh are set; undefined when it has none. */
export async function findGroups(mesh: Mesh): Promise<GroupLayout | undefined> {
  const limited = mesh.members.flatMap((member) => (member.app === undefined ? [] : [{ member, app: member.app }]));
  const wanted = limited.flatMap(({ member, app }) => controllersOf(app.limits).map((name) => ({ member, name })));
  if (wanted.length === 0) return undefined;
  const layout = await findLayout();
  const lacking = wanted.find(({ name }) => layout.mounts[name] === undefined);
  if (lacking === undefined) return layout;
  const { member, name } = lacking;
  throw new MeshError(
    "LIMITS_UNAVAILABLE",
    `${placeOf(mesh, member)}Cannot limit workload "${member.workload}": this machine has no control groups for ${name}; leave out limits.${name}, or mount them`,
  );
}

/** The state of a mesh must be no part of what the mesh reads. */
export function checkStatePlace(folder: string, mesh: Mesh): void {
  const sources = [...mesh.config, ...mesh.members.flatMap(({ app }) => app?.workingDir ?? [])];
  const around = sources.find((source) => folder === source || folder.startsWith(`${source}/`));
  if (around !== undefined) {
    throw new MeshError(
      "STATE_INSIDE",
      `Cannot keep state in "${folder}": it is inside "${around}", which the mesh reads; choose another folder with --state`,
    );
  }
}

/** The state folder must be reachable for the accounts that work in it. */
export async function checkStateAccess(folder: string): Promise<void> {
  const found = await obstacle(folder, NOBODY, EXECUTE);
  if (found === undefined) return;
  throw new MeshError(
    "STATE_UNREACHABLE",
    `Cannot keep state in "${folder}": other users may not enter "${found}"; choose another folder with --state`,
  );
}

/** Puts the programs where the mesh can use them. */
export async function placePrograms(installed: InstalledPrograms, runtimeFolder: string): Promise<Programs> {
  if (await isMissing(installed.envoy)) {
    throw new MeshError(
      "ENVOY_MISSING",
      `Cannot start a mesh without Envoy: there is none at "${installed.envoy}"; run "make setup", or set ENVOY to a binary`,
    );
  }
  for (const bundle of [installed.agentBundle, installed.discoveryBundle]) {
    if (await isMissing(bundle)) {
      throw new MeshError("NOT_BUILT", `Cannot start a mesh without "${bundle}": run "make build"`);
    }
  }
  const node = await placeFile(installed.node, READ | EXECUTE, runtimeFolder);
  return {
    nodeFolder: dirname(node),
    envoy: await placeFile(installed.envoy, READ | EXECUTE, runtimeFolder),
    agent: [node, ...(await placeAgent(installed.agentBundle, runtimeFolder))],
    discovery: [node, ...DISCOVERY_FLAGS, await placeFile(installed.discoveryBundle, READ, runtimeFolder)],
  };
}

/** Of `bin/pilot-discovery`. */
const DISCOVERY_FLAGS = ["--max-semi-space-size=4", "--no-memory-reducer"];

/** Of `bin/pilot-agent`. */
const AGENT_FLAGS = ["--max-semi-space-size=1", "--v8-pool-size=1", "--use-openssl-ca"];

/** What Node runs: the bundle by its launcher, where there is one. */
async function placeAgent(bundle: string, runtimeFolder: string): Promise<readonly string[]> {
  const launcher = join(dirname(bundle), "launcher.cjs");
  const placed = await placeFile(bundle, READ, runtimeFolder);
  if (placed !== (await realpath(bundle))) {
    // What the bundle finds beside it: its other parts, and the compiled code of all.
    const [from, to] = [dirname(bundle), dirname(placed)];
    const beside = (await readdir(from)).filter((name) => name.startsWith(basename(bundle, "cjs")));
    for (const name of beside) await copyFile(join(from, name), join(to, name));
  }
  if (await isMissing(launcher)) return [placed];
  return [...AGENT_FLAGS, await placeFile(launcher, READ, runtimeFolder), placed];
}

export interface AppsInput {
  readonly mesh: Mesh;
  readonly accounts: Readonly<Record<string, Account>>;
  readonly programs: Programs;
  readonly runtimeFolder: string;
}

/** Copies of the working folders that their users cannot read, by folder. Every app's command is found afterwards. */
export async function placeApps({
  mesh,
  accounts,
  programs,
  runtimeFolder,
}: AppsInput): Promise<Record<string, string>> {
  const apps = mesh.members.flatMap((member) => {
    const { app } = member;
    const account = app?.user === undefined ? ANYBODY : accounts[app.user];
    return app === undefined || account === undefined ? [] : [{ member, app, account }];
  });
  const copies: Record<string, string> = {};
  for (const [folder, users] of Map.groupBy(apps, ({ app }) => app.workingDir)) {
    copies[folder] = await placeWorkingFolder({
      path: folder,
      accounts: users.map(({ account }) => account),
      runtimeFolder,
    });
  }
  for (const { member, app, account } of apps) {
    const workingDir = copies[app.workingDir] ?? app.workingDir;
    const path = app.env.PATH ?? searchPath(programs);
    const problem = await commandProblem({ command: app.command[0] ?? "", workingDir, path, account });
    if (problem === undefined) continue;
    throw new MeshError(
      "COMMAND_NOT_FOUND",
      `${placeOf(mesh, member)}Cannot run workload "${member.workload}": ${problem}; install it, or correct its command`,
    );
  }
  return copies;
}

async function isMissing(path: string): Promise<boolean> {
  return (await ignoring(["ENOENT", "ENOTDIR"], () => stat(path))) === undefined;
}
