/**
 * Where a folder says what holds for the whole mesh: in the ConfigMap that istiod reads, in an IstioOperator, in the `mesh.yaml` of a
 * mesh on one machine, or in a file that is nothing but the mesh config.
 */
import { basename } from "node:path";
import { isRecord } from "#lib/is-record.ts";
import { readDocuments } from "#lib/yaml/read.ts";

/** The mesh config as found, not yet checked. */
export interface FoundMeshSettings {
  readonly file: string;
  readonly line: number;
  readonly raw: unknown;
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
      const raw = settingsIn(value, revision);
      if (raw !== undefined) return [{ file, line, raw, isWholeFile: false }];
      const isPlain = documents.length === 1 && PLAIN_NAMES.test(basename(file)) && isPlainSettings(value);
      return isPlain ? [{ file, line, raw: value, isWholeFile: true }] : [];
    });
  });
}

/** Reading thousands of files once more for nothing would take its time. */
function mayHold(file: string, text: string): boolean {
  return PLAIN_NAMES.test(basename(file)) || /meshConfig|\bmesh:/.test(text);
}

function settingsIn(value: unknown, revision: string): unknown {
  const { apiVersion, kind, metadata, spec, data } = record(value);
  const group = String(apiVersion).split("/")[0];
  if (group === "mizzen.dev" && kind === "Mesh") return record(spec).meshConfig;
  if (group === "install.istio.io" && kind === "IstioOperator") return record(spec).meshConfig;
  if (kind !== "ConfigMap") return undefined;
  const { name, namespace = "default" } = record(metadata);
  const isIstios = name === (revision === "" || revision === "default" ? "istio" : `istio-${revision}`);
  const text = record(data).mesh;
  if (!isIstios || namespace !== "istio-system" || typeof text !== "string") return undefined;
  return readDocuments(text)[0]?.value;
}

function isPlainSettings(value: unknown): boolean {
  return isRecord(value) && !("apiVersion" in value) && !("kind" in value);
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}
