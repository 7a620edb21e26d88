/** A folder of configuration, read once and as the control plane would read it. */
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { DEFAULT_MESH_CONFIG, type MeshConfig, meshConfigOf } from "#config/mesh/mesh-config.ts";
import { meshNetworksOf } from "#config/mesh/mesh-networks.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Origin } from "#config/schema/problem.ts";
import { MeshError } from "#lib/mesh-error.ts";
import type { Features } from "#model/features.ts";
import type { ObjectProblem } from "#model/ports.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { NO_MESH_FILE, readMeshFile } from "#sources/file/mesh-file.ts";
import { type NetworksFile, NO_NETWORKS_FILE, readNetworksFile, withNetworks } from "#sources/file/networks-file.ts";
import { readText } from "#sources/file/read-text.ts";
import { scanPaths } from "#sources/file/scan.ts";
import { memorySource } from "#sources/memory.ts";
import { addressRange } from "#standalone/mesh/address-range.ts";
import { type Member, memberKey } from "#standalone/mesh/mesh.ts";
import { readMesh } from "#standalone/mesh/read-mesh.ts";
import { assignAddresses } from "#standalone/plan/names.ts";
import { workloadEntry, workloadEntryFile } from "#standalone/plan/workload-entry.ts";
import { type FoundMeshSettings, findMeshSettings } from "./mesh-settings.ts";

export interface ConfigFolderInput {
  /** Files and folders. */
  readonly paths: readonly string[];
  readonly meshConfigFile: string | undefined;
  readonly networksFile: string | undefined;
  readonly features: Features;
  /** Objects of another `istio.io/rev` are left out. */
  readonly revision: string;
}

export interface ConfigFolder {
  readonly snapshot: Snapshot;
  readonly objects: readonly ConfigObject[];
  readonly problems: readonly ObjectProblem[];
  /** Those of a `mesh.yaml`, each with the address that it would have. */
  readonly members: readonly AddressedMember[];
}

export interface AddressedMember {
  readonly member: Member;
  readonly address: string;
  readonly origin: Origin;
}

/** Reads all of it. Throws when there is nothing to read; everything else is a problem of its own. */
export async function readConfigFolder(input: ConfigFolderInput): Promise<ConfigFolder> {
  const { features, revision } = input;
  const texts = await readTexts(input.paths);
  const settings = await meshSettings(input, texts.files);
  const members = membersIn(texts.files);
  const objects = Object.fromEntries(Object.entries(texts.files).filter(([file]) => !settings.wholeFiles.has(file)));
  const entries = new Map(members.map((one) => [workloadEntryFile(one.member), one]));
  const entryTexts = [...entries].map(([file, { member, address }]) => [file, workloadEntry(member, address)]);
  const files = { ...objects, ...Object.fromEntries(entryTexts) };
  const source = memorySource({ files, mesh: settings.mesh, features, revision });
  return {
    snapshot: source.current(),
    objects: source.objects().map((object) => {
      const member = entries.get(object.origin?.file ?? "");
      return member === undefined ? object : { ...object, origin: member.origin };
    }),
    problems: [...texts.problems, ...settings.problems, ...source.problems().filter((one) => !settings.isTaken(one))],
    members,
  };
}

interface Texts {
  readonly files: Readonly<Record<string, string>>;
  readonly problems: readonly ObjectProblem[];
}

async function readTexts(paths: readonly string[]): Promise<Texts> {
  for (const path of paths) {
    if ((await stat(path).catch(() => undefined)) === undefined)
      throw new MeshError("CONFIG_UNREADABLE", `Cannot read "${path}": there is no such file or folder`);
  }
  const { files, failures } = await scanPaths((await Promise.all(paths.map(configPaths))).flat());
  const problems = [...failures].map(([file, message]) => problemOf(file, message));
  const texts: [string, string][] = [];
  for (const file of [...files.keys()].sort()) {
    const { text, failure } = await readText(file);
    if (text !== undefined) texts.push([file, text]);
    else if (failure !== undefined) problems.push(problemOf(file, failure));
  }
  return { files: Object.fromEntries(texts), problems };
}

/** The `mesh.yaml` of a mesh on one machine may say that its configuration lies elsewhere. */
async function configPaths(path: string): Promise<readonly string[]> {
  const file = join(resolve(path), "mesh.yaml");
  const { text } = await readText(file);
  const mesh = text === undefined ? undefined : readMesh({ text, file }).mesh;
  return mesh === undefined ? [resolve(path)] : [...new Set([file, ...mesh.config])];
}

interface Settings {
  readonly mesh: MeshConfig;
  readonly problems: readonly ObjectProblem[];
  /** Files that hold the mesh config and nothing else. */
  readonly wholeFiles: ReadonlySet<string>;
  /** Whether a problem is that nobody knows an object which was understood here. */
  readonly isTaken: (problem: ObjectProblem) => boolean;
}

/** The files that are named count alone; without one, what the folder says. */
async function meshSettings(input: ConfigFolderInput, files: Texts["files"]): Promise<Settings> {
  const found = findMeshSettings(files, input.revision);
  const { mesh, networks: beside, problems } = await meshConfigIn(input, found);
  const networks = input.networksFile === undefined ? beside : await networksOf(input.networksFile);
  const named = [input.meshConfigFile, input.networksFile].flatMap((file) => (file === undefined ? [] : resolve(file)));
  const isTaken = ({ object, origin }: ObjectProblem) =>
    object.startsWith("IstioOperator/") && found.some(({ file }) => file === origin?.file);
  return {
    mesh: withNetworks(mesh, networks),
    problems: [...problems, ...networks.problems],
    wholeFiles: new Set([...found.filter(({ isWholeFile }) => isWholeFile).map(({ file }) => file), ...named]),
    isTaken,
  };
}

interface FoundConfig extends Pick<Settings, "mesh" | "problems"> {
  readonly networks: NetworksFile;
}

async function meshConfigIn(
  { meshConfigFile }: ConfigFolderInput,
  [first, ...others]: readonly FoundMeshSettings[],
): Promise<FoundConfig> {
  const networks = networksBeside(first);
  if (meshConfigFile !== undefined) {
    const file = resolve(meshConfigFile);
    return { ...readMeshFile(file, await neededText(file), NO_MESH_FILE), networks };
  }
  if (first === undefined) return { mesh: DEFAULT_MESH_CONFIG, problems: [], networks };
  const { value, problems } = meshConfigOf(first.raw);
  const place = { object: "MeshConfig", origin: { file: first.file, line: first.line } };
  const ignored = others.map(({ file, line }) => ({
    ...problemOf(file, `is ignored: ${first.file} has one already`, "MeshConfig"),
    origin: { file, line },
    severity: "warning" as const,
  }));
  const placed = problems.map((problem) => ({ ...problem, ...place }));
  return { mesh: value ?? DEFAULT_MESH_CONFIG, problems: [...placed, ...ignored], networks };
}

function networksBeside(found: FoundMeshSettings | undefined): NetworksFile {
  if (found?.networks === undefined) return NO_NETWORKS_FILE;
  const { value = {}, problems } = meshNetworksOf(found.networks);
  const place = { object: "MeshNetworks", origin: { file: found.file, line: found.line } };
  return { text: undefined, networks: value, problems: problems.map((problem) => ({ ...problem, ...place })) };
}

async function networksOf(path: string): Promise<NetworksFile> {
  const file = resolve(path);
  return readNetworksFile(file, { text: await neededText(file) }, NO_NETWORKS_FILE);
}

async function neededText(file: string): Promise<string> {
  const { text, failure = "there is no such file" } = await readText(file);
  if (text === undefined) throw new MeshError("CONFIG_UNREADABLE", `Cannot read "${file}": ${failure}`);
  return text;
}

/** With addresses in the order of the file, as `mizzen up` gives them out. */
function membersIn(files: Texts["files"]): readonly AddressedMember[] {
  return Object.entries(files).flatMap(([file, text]) => {
    const mesh = file.endsWith("mesh.yaml") ? readMesh({ text, file }).mesh : undefined;
    if (mesh === undefined) return [];
    const addresses = assignAddresses(mesh.members.map(memberKey), new Map(), addressRange(mesh.cidr));
    return mesh.members.map((member) => {
      const key = memberKey(member);
      return { member, address: addresses.get(key) ?? "", origin: { file, line: mesh.lines[key] ?? 1 } };
    });
  });
}

function problemOf(file: string, message: string, object = ""): ObjectProblem {
  return { object, field: "", message, severity: "error", origin: { file, line: 1 } };
}
