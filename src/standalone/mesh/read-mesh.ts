/** The text of `mesh.yaml` to a mesh, or to all that is wrong with it, each with its line. */
import { dirname, resolve } from "node:path";
import { meshConfigOf } from "#config/mesh/mesh-config.ts";
import { formatField, parseField } from "#config/schema/field-path.ts";
import { parse } from "#config/schema/parse.ts";
import type { Problem } from "#config/schema/problem.ts";
import { lineOfPath } from "#lib/yaml/places.ts";
import { readDocuments } from "#lib/yaml/read.ts";
import { DEFAULT_CIDR, rangeProblem } from "./address-range.ts";
import { checkMembers, isName, NAME_RULE } from "./check-members.ts";
import { membersOf } from "./members.ts";
import { type Mesh, memberKey } from "./mesh.ts";
import { allowedBeside, type MeshFile, meshSchema } from "./mesh-schema.ts";

const API_VERSION = "mizzen.dev/v1alpha1";

export interface MeshProblem extends Problem {
  /** Counted from 1. */
  readonly line: number;
}

export interface ReadMesh {
  /** Undefined when there is an error among the problems. */
  readonly mesh: Mesh | undefined;
  readonly problems: readonly MeshProblem[];
}

export interface MeshText {
  readonly text: string;
  /** Absolute path: relative paths in the text start from its folder. */
  readonly file: string;
}

/** Reads and checks a mesh file. Every problem is reported, not the first alone. */
export function readMesh({ text, file }: MeshText): ReadMesh {
  const [document, second] = readDocuments(text);
  if (document === undefined) return refused("is empty", 1);
  if (second !== undefined)
    return refused("holds several documents: the objects of the mesh go into other files", second.line);
  if (document.error !== undefined) return refused(document.error.message, document.error.line);
  if (document.warning !== undefined) return refused("gives a key twice: leave one of them out", document.warning.line);

  const { value, problems } = parse(meshSchema, document.value, "");
  const found = value === undefined ? problems : [...problems, ...checkFile(value), ...checkMembers(value.spec)];
  const placed = found.map(strictly).map((problem) => ({ ...problem, line: lineOfField(text, problem.field) }));
  if (value === undefined || placed.some(({ severity }) => severity === "error")) {
    return { mesh: undefined, problems: placed };
  }
  return { mesh: meshOf(value, file, text), problems: placed };
}

function meshOf({ metadata, spec }: MeshFile, file: string, text: string): Mesh {
  const folder = dirname(file);
  return {
    name: metadata.name,
    file,
    lines: linesOf(spec, text),
    config: (spec.config ?? ["."]).map((path) => resolve(folder, path)),
    meshConfig: spec.meshConfig ?? {},
    members: membersOf(spec, folder),
    cidr: spec.network?.cidr ?? DEFAULT_CIDR,
    agents: spec.agents ?? "own",
    exitWhenDone: spec.exitWhenDone ?? false,
    onUnreadablePolicy: spec.onUnreadablePolicy ?? "deny",
    suggestions: spec.try ?? [],
  };
}

function linesOf({ workloads = [], gateways = [] }: MeshFile["spec"], text: string): Mesh["lines"] {
  const lineOf = (list: string, i: number) => lineOfPath(text, ["spec", list, i]);
  return Object.fromEntries([
    ...workloads.map(({ name, namespace = "default" }, i) => [memberKey({ name, namespace }), lineOf("workloads", i)]),
    ...gateways.map(({ name, namespace = "istio-system" }, i) => [
      memberKey({ name, namespace }),
      lineOf("gateways", i),
    ]),
  ]);
}

function checkFile({ apiVersion, kind, metadata, spec }: MeshFile): Problem[] {
  const problems: Problem[] = [];
  const wrong = (field: string, message: string) => problems.push({ field, message, severity: "error" });
  if (apiVersion !== API_VERSION) wrong("apiVersion", `must be ${API_VERSION}, not ${JSON.stringify(apiVersion)}`);
  if (kind !== "Mesh") wrong("kind", `must be Mesh, not ${JSON.stringify(kind)}`);
  if (!isName(metadata.name)) wrong("metadata.name", `${NAME_RULE}, not ${JSON.stringify(metadata.name)}`);
  if ((spec.workloads ?? []).length + (spec.gateways ?? []).length === 0) {
    wrong("spec.workloads", "needs at least one workload, here or under spec.gateways");
  }
  if (spec.config?.length === 0) wrong("spec.config", "needs at least one file or folder");
  const range = spec.network?.cidr === undefined ? undefined : rangeProblem(spec.network.cidr);
  if (range !== undefined) wrong("spec.network.cidr", range);
  for (const problem of meshConfigOf(spec.meshConfig).problems) {
    problems.push({ ...problem, field: parseField(problem.field).reduce(formatField, "spec.meshConfig") });
  }
  return problems;
}

/** A misspelt field is an error here: the file is read once, by a person who is waiting for what it says. */
function strictly(problem: Problem): Problem {
  if (problem.severity === "error" || problem.field.startsWith("spec.meshConfig.")) return problem;
  const allowed = allowedBeside(problem.field).join(", ");
  return { field: problem.field, message: `is not a known field: allowed are ${allowed}`, severity: "error" };
}

function lineOfField(text: string, field: string): number {
  return lineOfPath(text, parseField(field));
}

function refused(message: string, line: number): ReadMesh {
  return { mesh: undefined, problems: [{ field: "", message, severity: "error", line }] };
}
