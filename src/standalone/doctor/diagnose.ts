/** Looks at a machine as a mesh would: what it has, what it lacks, and how to get that. */
import { once } from "node:events";
import { access, constants, readFile, statfs } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { errorText } from "#lib/mesh-error.ts";
import { runCommand } from "../host/command.ts";
import { findLayout } from "../host/control-groups.ts";
import { DEFAULT_RANGE } from "../mesh/address-range.ts";
import { CONTROLLERS } from "../plan/control-groups.ts";
import { refusal } from "../rootless/refusal.ts";
import { type InstalledPrograms, TOOLS } from "../up/preflight.ts";
import { type Finding, good } from "./finding.ts";
import { tryKernel } from "./kernel.ts";

export interface DiagnosisInput {
  readonly uid: number;
  /** Where commands are looked up. */
  readonly path: string;
  readonly installed: InstalledPrograms;
  /** Where the state of meshes goes. */
  readonly stateFolder: string;
  /** Of Node, such as `v24.1.0`. */
  readonly nodeVersion: string;
}

/** Everything that was looked at, in the order in which a start would need it. */
export async function diagnose(input: DiagnosisInput): Promise<readonly Finding[]> {
  const [rights, enter] = await lookAtRights(input.uid);
  const tools = await lookAtTools(input);
  const kernel = enter === undefined ? [] : await tryKernel(enter).catch((error) => [kernelUntried(error)]);
  const rest = await Promise.all([
    lookAtEnvoy(input.installed.envoy),
    lookAtBundles(input.installed),
    lookAtDisk(input.stateFolder),
    lookAtGroups(),
    lookAtPort(),
    lookAtAddresses(),
  ]);
  return [rights, ...tools, ...kernel, lookAtNode(input.nodeVersion), ...rest];
}

/** With the way into a namespace of one's own, when there is one. */
async function lookAtRights(uid: number): Promise<readonly [Finding, readonly string[] | undefined]> {
  const check = "rights";
  const enter = uid === 0 ? ["unshare", "--net", "--"] : ["unshare", "--user", "--map-root-user", "--net", "--"];
  try {
    await runCommand({ argv: [...enter, "true"] });
    return [good(check, uid === 0 ? "root" : `user namespaces: meshes run without root, as account ${uid}`), enter];
  } catch (cause) {
    if (uid === 0) {
      const found = "root may not make network namespaces";
      return [{ check, verdict: "bad", found, remedy: "in a container, run it privileged" }, undefined];
    }
    const { message } = await refusal(cause);
    const [found = "", remedy = ""] = message.replace("Cannot run a mesh without root: ", "").split("; ", 2);
    return [{ check, verdict: "bad", found, remedy }, undefined];
  }
}

/** Tools that some meshes need, with their Debian packages. */
const MORE_TOOLS: Readonly<Record<string, readonly [string, string]>> = {
  curl: ["curl", "the examples use it"],
  nft: ["nftables", "--egress needs it"],
};
const ROOTLESS_TOOLS: Readonly<Record<string, readonly [string, string]>> = {
  newuidmap: ["uidmap", "without it all apps of a mesh run under your own account"],
  slirp4netns: ["slirp4netns", "--egress needs it"],
};

async function lookAtTools({ uid, path }: DiagnosisInput): Promise<readonly Finding[]> {
  const required = Object.entries(TOOLS).map(([tool, debian]) => ({ tool, debian, why: "" }));
  const optional = Object.entries({ ...MORE_TOOLS, ...(uid === 0 ? {} : ROOTLESS_TOOLS) }).map(
    ([tool, [debian, why]]) => ({ tool, debian, why }),
  );
  return Promise.all(
    [...required, ...optional].map(async ({ tool, debian, why }): Promise<Finding> => {
      const place = await findIn(path, tool);
      if (place !== undefined) return good(tool, place);
      const remedy = `install it (Debian: apt-get install ${debian})${why === "" ? "" : `; ${why}`}`;
      return { check: tool, verdict: why === "" ? "bad" : "poor", found: "not installed", remedy };
    }),
  );
}

async function findIn(path: string, tool: string): Promise<string | undefined> {
  for (const folder of path.split(":").filter((name) => name !== "")) {
    const file = join(folder, tool);
    if (await can(file, constants.X_OK)) return file;
  }
  return undefined;
}

function kernelUntried(error: unknown): Finding {
  const found = `cannot be tried: ${errorText(error)}`;
  return { check: "kernel", verdict: "bad", found, remedy: "install the tools above, and run this again" };
}

/** The first one whose sources run without a compiler. */
const NODE_MAJOR = 24;

function lookAtNode(version: string): Finding {
  if (Number.parseInt(version.slice(1), 10) >= NODE_MAJOR) return good("Node", version);
  return {
    check: "Node",
    verdict: "bad",
    found: version,
    remedy: `run \`make setup\`, which installs Node ${NODE_MAJOR}`,
  };
}

async function lookAtEnvoy(file: string): Promise<Finding> {
  const check = "Envoy";
  const remedy = "run `make setup`, or set ENVOY to a binary";
  if (!(await can(file, constants.F_OK))) return { check, verdict: "bad", found: `none at ${file}`, remedy };
  try {
    const words = await runCommand({ argv: [file, "--version"] });
    const version = /\/(\d+\.\d+\.\d+)[^/]*\//.exec(words)?.[1] ?? words.trim();
    return good(check, `${version} at ${file}`);
  } catch (cause) {
    return { check, verdict: "bad", found: `${file} does not run: ${errorText(cause)}`, remedy };
  }
}

async function lookAtBundles({ agentBundle, discoveryBundle }: InstalledPrograms): Promise<Finding> {
  const present = await Promise.all([agentBundle, discoveryBundle].map((file) => can(file, constants.R_OK)));
  if (!present.includes(false)) return good("bundles", dirname(agentBundle));
  const found = `missing in ${dirname(agentBundle)}`;
  return { check: "bundles", verdict: "bad", found, remedy: "run `make build`" };
}

const NEEDED_BYTES = 200 * 1024 * 1024;
const NEEDED_FILES = 1000;

async function lookAtDisk(stateFolder: string): Promise<Finding> {
  const check = "disk";
  const folder = await nearestFolder(stateFolder);
  if (!(await can(folder, constants.W_OK))) {
    const found = `${folder} may not be written`;
    return { check, verdict: "bad", found, remedy: "choose another folder with --state" };
  }
  const { bavail, bsize, ffree, files } = await statfs(folder);
  const free = bavail * bsize;
  const found = `${Math.floor(free / 1024 / 1024)} MB free for ${stateFolder}`;
  // Some file systems do not count their files.
  const enough = free >= NEEDED_BYTES && (files === 0 || ffree >= NEEDED_FILES);
  return enough
    ? good(check, found)
    : { check, verdict: "bad", found, remedy: "make room, or choose another folder with --state" };
}

/** The folder, or the first above it that is there. */
async function nearestFolder(folder: string): Promise<string> {
  return folder === "/" || (await can(folder, constants.F_OK)) ? folder : nearestFolder(dirname(folder));
}

async function lookAtGroups(): Promise<Finding> {
  const check = "control groups";
  const { version, mounts } = await findLayout();
  const lacking = CONTROLLERS.filter((controller) => mounts[controller] === undefined);
  if (lacking.length === 0) return good(check, `of the ${version === 1 ? "first" : "second"} kind`);
  const found = `none for ${lacking.join(", ")}`;
  return { check, verdict: "poor", found, remedy: "mount them; only workloads with limits need them" };
}

/** Where the samples publish. */
const SAMPLE_PORT = 8080;

async function lookAtPort(): Promise<Finding> {
  const check = `port ${SAMPLE_PORT}`;
  const server = createServer().listen({ host: "127.0.0.1", port: SAMPLE_PORT });
  const free = await once(server, "listening").then(
    () => true,
    () => false,
  );
  server.close();
  if (free) return good(check, "free on 127.0.0.1");
  return { check, verdict: "poor", found: "in use", remedy: "start samples with --free-ports, or stop what uses it" };
}

/** Addresses of a mesh are its own; but what the machine reaches under the same ones is hidden from a mesh with a way out. */
async function lookAtAddresses(): Promise<Finding> {
  const check = "addresses";
  const range = DEFAULT_RANGE.cidr;
  const table = await readFile("/proc/net/route", "utf8").catch(() => "");
  if (!routesInto(table, DEFAULT_RANGE.gateway)) return good(check, `${range} is used by nobody else`);
  const found = `this machine has a route into ${range}, which a mesh has for itself unless told otherwise`;
  return {
    check,
    verdict: "poor",
    found,
    remedy: "with --egress, choose another range by spec.network.cidr of mesh.yaml",
  };
}

/** Whether a table such as /proc/net/route has an entry, but the default one, that overlaps the /16 of an address. */
export function routesInto(table: string, address: string): boolean {
  const [first = 0, second = 0] = address.split(".").map(Number);
  const wanted = (first << 24) | (second << 16);
  return table
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields.length > 7)
    .some(([, destination = "", , , , , , mask = ""]) => {
      const common = hostOrder(mask) & 0xff_ff_00_00;
      return hostOrder(mask) !== 0 && (hostOrder(destination) & common) === (wanted & common);
    });
}

/** The kernel prints addresses with their last byte first. */
function hostOrder(hex: string): number {
  return Buffer.from(hex.padStart(8, "0"), "hex").reverse().readInt32BE();
}

async function can(file: string, mode: number): Promise<boolean> {
  return access(file, mode).then(
    () => true,
    () => false,
  );
}
