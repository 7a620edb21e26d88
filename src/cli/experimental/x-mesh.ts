/** A mesh as its files describe it, for commands that look at configuration without asking anybody. */

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { objectsOfKind } from "#config/kinds/kind.ts";
import { serviceKind } from "#config/kinds/service/kind.ts";
import type { Service } from "#config/kinds/service/schema.ts";
import { workloadEntryKind } from "#config/kinds/workload-entry/kind.ts";
import { DEFAULT_MESH_CONFIG, meshConfigOf } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { parseField } from "#config/schema/field-path.ts";
import type { PeerPolicies } from "#explain/mtls.ts";
import { type KnownWorkload, workloadOfDocument, workloadOfEntry } from "#explain/workloads.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { lineOfPath } from "#lib/yaml/places.ts";
import { readDocuments, splitDocuments } from "#lib/yaml/read.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { scanPaths } from "#sources/file/scan.ts";
import { memorySource } from "#sources/memory.ts";
import { readMesh } from "#standalone/mesh/read-mesh.ts";
import { statePaths } from "#standalone/plan/state-paths.ts";
import { strictest } from "#translate/policies/peer-authentication.ts";
import { type ChoiceOptions, choiceOf, needRoot } from "../terminal/options.ts";

export interface MeshOfFiles {
  readonly snapshot: Snapshot;
  readonly workloads: readonly KnownWorkload[];
  readonly services: readonly ConfigObject<Service>[];
  /** `file:line` of a field. */
  readonly placeOf: (object: ConfigObject, field: string) => string;
  /** What is wrong with the files, one line each. */
  readonly problems: readonly string[];
}

export interface FolderOptions extends ChoiceOptions {
  readonly file?: string;
}

/** What decides which transport workloads accept; what stands in for objects that cannot be read goes first. */
export function peerPolicies({ unreadablePolicies, peerAuthentications, mesh }: Snapshot): PeerPolicies {
  return {
    policies: [...strictest("", unreadablePolicies), ...peerAuthentications],
    rootNamespace: mesh.rootNamespace,
  };
}

/** The mesh of a folder; or else the one that is up, with what was applied to it. */
export async function meshOfOptions(options: FolderOptions): Promise<MeshOfFiles> {
  if (options.file !== undefined) {
    const path = resolve(options.file);
    return meshOfFiles({ path, meshFile: join(path, "mesh.yaml"), applied: [] });
  }
  needRoot("look at a mesh that is up; name its folder by -f");
  const { findMesh } = await import("#standalone/commands/find-mesh.ts");
  const { file: meshFile, stateFolder } = await findMesh(choiceOf(options));
  return meshOfFiles({ path: dirname(meshFile), meshFile, applied: [statePaths(stateFolder).applied] });
}

interface MeshPlace {
  /** Where its files are, unless the mesh file names others. */
  readonly path: string;
  readonly meshFile: string;
  /** Folders with what was applied while it runs. */
  readonly applied: readonly string[];
}

async function meshOfFiles({ path, meshFile, applied }: MeshPlace): Promise<MeshOfFiles> {
  if (!existsSync(path))
    throw new MeshError("CONFIG_UNREADABLE", `Cannot read "${path}": there is no such file or folder`);
  const read = existsSync(meshFile) ? readMesh({ text: await readFile(meshFile, "utf8"), file: meshFile }) : undefined;
  const mesh = read?.mesh;
  const { files } = await scanPaths([...(mesh?.config ?? [path]), ...applied]);
  const texts = Object.fromEntries(
    await Promise.all([...files.keys()].sort().map(async (file) => [file, await readFile(file, "utf8")] as const)),
  );
  const source = memorySource({
    files: texts,
    mesh: meshConfigOf(mesh?.meshConfig).value ?? DEFAULT_MESH_CONFIG,
    revision: "",
  });
  const objects = source.objects();
  const ofKind = objectsOfKind(Map.groupBy(objects, ({ kind }) => kind));
  const documents = Object.values(texts).flatMap((text) => readDocuments(text).map(({ value }) => value));
  const errors = source.problems().filter(({ severity }) => severity === "error");
  return {
    snapshot: source.current(),
    workloads: [
      ...(mesh?.members ?? []),
      ...ofKind(workloadEntryKind).map(workloadOfEntry),
      ...documents.flatMap((document) => workloadOfDocument(document) ?? []),
    ],
    services: ofKind(serviceKind),
    placeOf: (object, field) => placeIn(texts, object, field),
    problems: [
      ...(read?.problems ?? []).map(({ line, field, message }) => `${meshFile}:${line}: ${field} ${message}`),
      ...errors.map(
        ({ origin, object, field, message }) => `${origin?.file}:${origin?.line}: ${object} ${field} ${message}`,
      ),
    ],
  };
}

function placeIn(texts: Readonly<Record<string, string>>, { origin }: ConfigObject, field: string): string {
  const text = origin === undefined ? undefined : texts[origin.file];
  if (origin === undefined || text === undefined) return "";
  const part = splitDocuments(text).findLast(({ line }) => line <= origin.line);
  const file = shortest(origin.file);
  if (part === undefined) return `${file}:${origin.line}`;
  return `${file}:${part.line - 1 + lineOfPath(part.text, parseField(field))}`;
}

/** As a person in this folder would write it. */
function shortest(file: string): string {
  const near = relative(process.cwd(), file);
  return near.startsWith("..") ? file : near;
}

/** The workload of a name, `name` or `name.namespace`; replicas are one. */
export function workloadNamed({ workloads }: MeshOfFiles, wanted: string): KnownWorkload {
  const found = workloads.filter(
    ({ name, namespace }) => wanted === name || wanted === `${name}.${namespace}` || wanted === `${namespace}/${name}`,
  );
  const [first] = found;
  if (first === undefined) {
    const known = workloads.map(({ name, namespace }) => `${name}.${namespace}`).join(", ") || "none";
    throw new MeshError("MEMBER_UNKNOWN", `No workload "${wanted}": there are ${known}`);
  }
  const others = new Set(found.map(({ namespace }) => namespace));
  if (others.size > 1)
    throw new MeshError("MEMBER_AMBIGUOUS", `"${wanted}" is in ${[...others].join(" and ")}: write NAME.NAMESPACE`);
  return first;
}
