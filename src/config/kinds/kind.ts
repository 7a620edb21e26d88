/** The definition of a kind: its names, its schema and checks, and how an API server presents it. */
import type { ResourceType } from "#lib/kubernetes/resource-types.ts";
import { checkMetadata } from "../checks/metadata.ts";
import type { ConfigObject } from "../schema/config-object.ts";
import { independentOf } from "../schema/independent.ts";
import type { Schema } from "../schema/message.ts";
import { isUnknownField, parse, parseSpec } from "../schema/parse.ts";
import { asError, type Parsed, type Problem } from "../schema/problem.ts";

/** A kind, defined in the folder of its name. */
export interface Kind<Spec = unknown, Status = unknown> {
  /** Empty for the core group of Kubernetes. */
  readonly group: string;
  readonly name: string;
  /** As in the paths of the API server. */
  readonly plural: string;
  /** Objects of the kind belong to no namespace. */
  readonly isClusterScoped?: true;
  /** Versions that files may use, the newest first. */
  readonly versions: readonly string[];
  /** The only version that API servers and istiod have, if they do not have all of `versions`. */
  readonly servedAs?: string;
  readonly schema: Schema<Spec>;
  /** Fields of the content beside the metadata, for a kind without a spec. */
  readonly content?: readonly string[];
  /** The schema lists only the fields that the mesh reads, and ignores others. */
  readonly isPartial?: true;
  /** An unknown field is an error: a policy without the field could allow what its author wants to forbid. */
  readonly isStrict?: true;
  /** The mesh knows the kind, but objects of it have no effect yet. */
  readonly hasNoEffect?: true;
  /** Present if the kind comes with the mesh, by a CustomResourceDefinition. */
  readonly crd?: CustomKind;
  /** Reads and checks the spec of an object of this kind. */
  readonly read: (spec: unknown, head: Omit<ConfigObject, "spec">) => Parsed<ConfigObject<Spec, Status>>;
}

/** What its CustomResourceDefinition says about a kind beyond its schema. */
export interface CustomKind {
  readonly shortName?: string;
  readonly description: string;
  /** Columns of `kubectl get`, before the age. */
  readonly columns?: readonly Column[];
  /** The API server rejects objects without a spec. */
  readonly needsSpec?: true;
}

/** A column of text. */
interface Column {
  readonly name: string;
  readonly jsonPath: string;
  readonly description: string;
}

interface Definition<Spec, Status> extends Omit<Kind<Spec, Status>, "read"> {
  /** Of the status, if the mesh acts upon it. */
  readonly status?: Schema<Status>;
  /** Checks beyond the schema; a kind that only its API server checks has none. */
  readonly check?: (object: ConfigObject<Spec>) => Iterable<Problem>;
}

/** Defines a kind. */
export function kind<Spec, Status>(definition: Definition<Spec, Status>): Kind<Spec, Status> {
  const { status: _, check: __, ...rest } = definition;
  return { ...rest, read: (spec, head) => read(definition, spec, head) };
}

function read<Spec, Status>(
  definition: Definition<Spec, Status>,
  rawSpec: unknown,
  { status: rawStatus, ...head }: Omit<ConfigObject, "spec">,
): Parsed<ConfigObject<Spec, Status>> {
  const { value: object, problems: found } = readSpec(definition, rawSpec, head);
  const problems = reported(definition, found);
  if (object === undefined || problems.some(isError)) return { value: undefined, problems };
  // The cluster writes the status, not the user, so problems in it are not reported.
  const status =
    definition.status && rawStatus !== undefined ? parse(definition.status, rawStatus, "status").value : undefined;
  return { value: status === undefined ? object : { ...object, status }, problems };
}

/** Reads and checks the spec. Checks also run on what is left of an invalid one, so that one mistake does not hide others. */
function readSpec<Spec>(
  { schema, check }: Definition<Spec, unknown>,
  rawSpec: unknown,
  head: Omit<ConfigObject, "spec" | "status">,
): Parsed<Omit<ConfigObject<Spec>, "status">> {
  const { value: spec, problems, salvaged } = parseSpec(schema, rawSpec);
  const checked = (object: ConfigObject<Spec>) => [
    ...checkMetadata(head.metadata, head.kind),
    ...(check?.(object) ?? []),
  ];
  if (spec === undefined) {
    const more = salvaged === undefined ? [] : checked({ ...head, spec: salvaged.value });
    return { value: undefined, problems: [...problems, ...independentOf(more, problems, salvaged?.undecided)] };
  }
  const object = { ...head, spec };
  return { value: object, problems: [...problems, ...checked(object)] };
}

/** Of the problems, those that a kind reports, each with the field as it is in the object. */
function reported<Spec, Status>(
  { isPartial, isStrict, content }: Definition<Spec, Status>,
  found: readonly Problem[],
): readonly Problem[] {
  const known = isStrict ? found.map((one) => (isUnknownField(one) ? asError(one) : one)) : found;
  const counting = isPartial ? known.filter(isError) : known;
  return content ? counting.map((one) => ({ ...one, field: one.field.replace(/^spec\.?/, "") })) : counting;
}

function isError({ severity }: Problem): boolean {
  return severity === "error";
}

/** The kind as API servers name it, in the version into which they convert every object. */
export function resourceTypeOf({ group, name, plural, versions, servedAs, isClusterScoped }: Kind): ResourceType {
  return { group, version: servedAs ?? versions[0] ?? "", kind: name, plural, namespaced: isClusterScoped !== true };
}

/** Whether an object is of a kind, for `filter()`. */
export function isOfKind<Spec, Status>(
  kind: Kind<Spec, Status>,
): (object: ConfigObject) => object is ConfigObject<Spec, Status> {
  return (object): object is ConfigObject<Spec, Status> => object.kind === kind.name;
}

/** Looks up the objects of a kind among objects by the names of their kinds. */
export function objectsOfKind(
  byKind: ReadonlyMap<string, readonly ConfigObject[]>,
): <Spec, Status>(kind: Kind<Spec, Status>) => readonly ConfigObject<Spec, Status>[] {
  return <Spec, Status>({ name }: Kind<Spec, Status>) =>
    (byKind.get(name) ?? NO_OBJECTS) as readonly ConfigObject<Spec, Status>[];
}

const NO_OBJECTS: readonly ConfigObject[] = [];
