/** The mesh config as a file holds it. */
import { DEFAULT_MESH_CONFIG, type MeshConfig, meshConfigOf } from "#config/mesh/mesh-config.ts";
import { parseField } from "#config/schema/field-path.ts";
import { lineOfPath } from "#lib/yaml/places.ts";
import { readDocument } from "#lib/yaml/read.ts";
import type { ObjectProblem } from "#model/ports.ts";

export interface MeshFile {
  readonly text: string | undefined;
  /** As it last was without errors. */
  readonly mesh: MeshConfig;
  readonly problems: readonly ObjectProblem[];
}

/** Istio's defaults, for a mesh without a file. */
export const NO_MESH_FILE: MeshFile = { text: undefined, mesh: DEFAULT_MESH_CONFIG, problems: [] };

/** Reads the text of a mesh config file over what it said before. */
export function readMeshFile(file: string, text: string, previous: MeshFile): MeshFile {
  const { value: raw, error } = readDocument(text);
  if (error !== undefined) {
    return { text, mesh: previous.mesh, problems: [meshProblem({ ...error, file, severity: "error" })] };
  }
  const { value: mesh, problems } = meshConfigOf(raw);
  return {
    text,
    mesh: mesh ?? previous.mesh,
    problems: problems.map((problem) =>
      meshProblem({ ...problem, file, line: lineOfPath(text, parseField(problem.field)) }),
    ),
  };
}

/** What a file says over other settings in place of Istio's defaults; alone, where it has errors now. */
export function meshFileOver(base: MeshConfig, { text, mesh }: MeshFile): MeshConfig {
  if (text === undefined) return mesh === DEFAULT_MESH_CONFIG ? base : mesh;
  const { value: raw, error } = readDocument(text);
  return (error === undefined ? meshConfigOf(raw, base).value : undefined) ?? mesh;
}

/** A mesh config file that cannot be read: what it said stays. */
export function unreadableMeshFile(file: string, message: string, previous: MeshFile): MeshFile {
  const problem = meshProblem({ file, line: 1, message, severity: "error" });
  return { text: undefined, mesh: previous.mesh, problems: [problem] };
}

/** A mesh config file that is not there, which is no error: what it said stays, and Istio's defaults hold if it never was. */
export function missingMeshFile(file: string, previous: MeshFile): MeshFile {
  const message = `does not exist: ${previous.mesh === DEFAULT_MESH_CONFIG ? "Istio's defaults hold" : "what it said last holds"}`;
  return {
    text: undefined,
    mesh: previous.mesh,
    problems: [meshProblem({ file, line: 1, message, severity: "warning" })],
  };
}

function meshProblem(input: {
  readonly file: string;
  readonly line: number;
  readonly field?: string;
  readonly message: string;
  readonly severity: "error" | "warning";
}): ObjectProblem {
  const { file, line, field = "", message, severity } = input;
  return { object: "MeshConfig", field, message, severity, origin: { file, line } };
}
