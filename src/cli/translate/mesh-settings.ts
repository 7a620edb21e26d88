/**
 * Where a folder says what holds for the whole mesh: in the ConfigMap that istiod reads, in an IstioOperator, in the `mesh.yaml` of a
 * mesh on one machine, or in a file that is nothing but the mesh config.
 */
import { basename } from "node:path";
import { isRecord } from "#lib/json/is-record.ts";
import { readDocuments } from "#lib/yaml/read.ts";

/** The mesh config as found, not yet checked. */
export interface FoundMeshSettings {
  readonly file: string;
  readonly line: number;
  readonly raw: unknown;
  /** The networks beside it, if there are any. */
  readonly networks?: unknown;
  /** The file holds nothing else: it is no file of objects. */
  readonly isWholeFile: boolean;
}

const PLAIN_NAMES = /^(mesh|mesh-?config)\.(ya?ml|json)$/i;

/** All that the files say of it, in the order of their names. */
export function findMeshSettings(
  files: Readonly<Record<string, string>>,
  revision: string,
): readonly FoundMeshSettings[] {
  return Object.entries(files).flatMap(([file, text]) => {
    if (!mayHold(file, text)) return [];
    const documents = readDocuments(text);
    return documents.flatMap(({ value, line }): FoundMeshSettings[] => {
      const found = settingsIn(value, revision);
      if (found !== undefined) return [{ file, line, ...found, isWholeFile: false }];
      const isPlain = documents.length === 1 && PLAIN_NAMES.test(basename(file)) && isPlainSettings(value);
      return isPlain ? [{ file, line, raw: value, isWholeFile: true }] : [];
    });
  });
}

/** Reading thousands of files once more for nothing would take its time. */
function mayHold(file: string, text: string): boolean {
  return PLAIN_NAMES.test(basename(file)) || /meshConfig|\bmesh:/.test(text);
}

function settingsIn(value: unknown, revision: string): Pick<FoundMeshSettings, "raw" | "networks"> | undefined {
  const { apiVersion, kind, metadata, spec, data } = record(value);
  const owner = `${String(apiVersion).split("/")[0]}/${kind}`;
  if (owner === "mizzen.dev/Mesh" || owner === "install.istio.io/IstioOperator") {
    const { meshConfig: raw, values } = record(spec);
    const { meshNetworks } = record(record(values).global);
    return raw === undefined && meshNetworks === undefined ? undefined : { raw, ...networksIn(meshNetworks) };
  }
  if (kind !== "ConfigMap") return undefined;
  const { name, namespace = "default" } = record(metadata);
  const isIstios = name === (revision === "" || revision === "default" ? "istio" : `istio-${revision}`);
  const { mesh, meshNetworks } = record(data);
  if (!isIstios || namespace !== "istio-system" || typeof mesh !== "string") return undefined;
  const networks = typeof meshNetworks === "string" ? readDocuments(meshNetworks)[0]?.value : undefined;
  return { raw: readDocuments(mesh)[0]?.value, ...(isRecord(networks) && { networks }) };
}

/** Values of an installation list the networks themselves. */
function networksIn(meshNetworks: unknown): Pick<FoundMeshSettings, "networks"> {
  return isRecord(meshNetworks) && Object.keys(meshNetworks).length > 0 ? { networks: { networks: meshNetworks } } : {};
}

function isPlainSettings(value: unknown): boolean {
  return isRecord(value) && !("apiVersion" in value) && !("kind" in value);
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}
