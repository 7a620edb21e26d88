/** One raw document, as YAML or JSON gives it, to one checked object. */
import { type ConfigObject, type Metadata, objectKey } from "../schema/config-object.ts";
import { independentOf } from "../schema/independent.ts";
import { type Infer, list, map, message, required } from "../schema/message.ts";
import { parse } from "../schema/parse.ts";
import { type Origin, type Problem, warning } from "../schema/problem.ts";
import { anything, bool, string, time } from "../schema/scalars.ts";
import type { Kind } from "./kind.ts";
import { kindsMeant, standingOf } from "./kinds.ts";

/** What became of a raw document. */
export interface ParsedObject {
  /** Set when the mesh acts upon objects of this kind and there were no errors. */
  readonly object: ConfigObject | undefined;
  readonly problems: readonly Problem[];
  /** `kind/namespace/name` as far as it can be told, also for a broken object; empty when it is no object at all. */
  readonly key: string;
  /** The kind is known, but has no effect yet. */
  readonly notYet: boolean;
}

/** Reads and checks one object. */
export function parseObject(raw: unknown, origin?: Origin): ParsedObject {
  const apiVersion = textAt(raw, "apiVersion");
  const kind = textAt(raw, "kind");
  if (apiVersion === undefined || kind === undefined) {
    return { object: undefined, problems: [NO_OBJECT], key: "", notYet: false };
  }
  const key = keyOf(raw, kind);
  const standing = standingOf(apiVersion, kind);
  if (standing === "not-ours") return { object: undefined, problems: [], key, notYet: false };
  if (standing === "not-yet") return { object: undefined, problems: [], key, notYet: true };
  if (standing === "unknown") {
    const meant = kindsMeant(apiVersion, kind).map((one) => `; perhaps "${one.kind}" of "${one.apiVersion}" is meant`);
    const message = `kind "${kind}" of "${apiVersion}" is unknown: ignored${meant.join("")}`;
    return { object: undefined, problems: [{ field: "", message, severity: "warning" }], key, notYet: false };
  }
  const { object, problems } = readObject(raw, standing.kind, origin);
  return { object, problems: [...unserved(apiVersion, standing.kind), ...problems], key, notYet: false };
}

/** A folder that works here should work in a cluster, too. */
function unserved(apiVersion: string, { servedAs }: Kind): readonly Problem[] {
  if (servedAs === undefined || apiVersion.endsWith(`/${servedAs}`)) return [];
  return [
    warning("apiVersion", `should end with "${servedAs}": API servers and istiod have this kind in no other version`),
  ];
}

function readObject(
  raw: unknown,
  kind: Kind,
  origin: Origin | undefined,
): { object: ConfigObject | undefined; problems: readonly Problem[] } {
  const envelope = parse(envelopeSchema, withSpec(raw, kind.content ?? []), "");
  const readable = envelope.value ?? envelope.salvaged?.value;
  if (readable === undefined) return { object: undefined, problems: envelope.problems };
  const { kind: name, metadata, spec, status } = readable;
  const { value: object, problems } = kind.read(spec ?? {}, {
    kind: name,
    metadata: metadataOf(metadata ?? {}),
    ...(status !== undefined && { status }),
    origin,
  });
  if (envelope.value !== undefined) return { object, problems: [...envelope.problems, ...problems] };
  return { object: undefined, problems: [...envelope.problems, ...independentOf(problems, envelope.problems)] };
}

/** Some kinds of Kubernetes have no spec: what stands beside the metadata is read as one. */
function withSpec(raw: unknown, content: readonly string[]): unknown {
  if (content.length === 0 || typeof raw !== "object" || raw === null) return raw;
  const { true: inside = [], false: others = [] } = Object.groupBy(Object.entries(raw), ([name]) =>
    content.includes(name) ? "true" : "false",
  );
  return { ...Object.fromEntries(others), spec: Object.fromEntries(inside) };
}

const NO_OBJECT: Problem = {
  field: "",
  message: `is not an object: "apiVersion" and "kind" are required`,
  severity: "error",
};

const metadataSchema = message({
  name: string(),
  namespace: string(),
  labels: map(string()),
  annotations: map(string()),
  creationTimestamp: time(),
  deletionGracePeriodSeconds: anything(),
  deletionTimestamp: anything(),
  finalizers: anything(),
  generateName: string(),
  generation: anything(),
  managedFields: anything(),
  ownerReferences: list(
    message({
      apiVersion: string(),
      kind: string(),
      name: string(),
      uid: anything(),
      controller: bool(),
      blockOwnerDeletion: anything(),
    }),
  ),
  resourceVersion: anything(),
  selfLink: anything(),
  uid: anything(),
});

const envelopeSchema = message({
  apiVersion: required(string()),
  kind: required(string()),
  metadata: metadataSchema,
  spec: anything(),
  status: anything(),
});

function metadataOf(given: Infer<typeof metadataSchema>): Metadata {
  const owner = given.ownerReferences?.find(({ controller }) => controller === true);
  return {
    name: given.name ?? "",
    namespace: given.namespace || "default",
    labels: given.labels ?? {},
    annotations: given.annotations ?? {},
    createdAt: given.creationTimestamp ?? 0,
    ...(given.generateName && { generateName: given.generateName }),
    ...(owner && { controller: { kind: owner.kind ?? "", name: owner.name ?? "" } }),
    ...(given.deletionTimestamp !== undefined && { deleting: true }),
  };
}

function keyOf(raw: unknown, kind: string): string {
  const metadata = fieldOf(raw, "metadata");
  const name = textAt(metadata, "name") ?? "";
  const namespace = textAt(metadata, "namespace") || "default";
  return objectKey({ kind, metadata: metadataOf({ name, namespace }), spec: undefined, origin: undefined });
}

function textAt(raw: unknown, name: string): string | undefined {
  const value = fieldOf(raw, name);
  return typeof value === "string" && value !== "" ? value : undefined;
}

function fieldOf(raw: unknown, name: string): unknown {
  return typeof raw === "object" && raw !== null && Object.hasOwn(raw, name) ? Reflect.get(raw, name) : undefined;
}
