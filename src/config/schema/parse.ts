/**
 * Parsing in two pure steps: `normalise` walks the raw value along the schema (names in camelCase, null as unset, unknown
 * fields reported), then zod checks what is left.
 */
import type * as z from "zod";
import { isRecord } from "#lib/is-record.ts";
import type { Parsed, Problem } from "../problem.ts";
import { formatField } from "./field-path.ts";
import type { Schema } from "./message.ts";

/** Reads a raw value by its schema. `at` is the path of the value inside its object, such as `spec`. */
export function parse<T>(schema: Schema<T>, raw: unknown, at: string): Parsed<T> {
  return parseAlong(schema, raw, { at, problems: [], keepsEmptyLists: true });
}

/**
 * Reads the spec of an object. Nothing lies below it that an empty list could replace, so there such a list is as good as
 * none, as protobuf has it.
 */
export function parseSpec<T>(schema: Schema<T>, raw: unknown): Parsed<T> {
  return parseAlong(schema, raw, { at: "spec", problems: [], keepsEmptyLists: false });
}

interface Walk {
  readonly at: string;
  readonly problems: Problem[];
  readonly keepsEmptyLists: boolean;
}

function parseAlong<T>(schema: Schema<T>, raw: unknown, walk: Walk): Parsed<T> {
  const { at, problems } = walk;
  const result = schema.safeParse(normalise(schema, raw, walk));
  if (result.success) {
    const refused = problems.some((problem) => problem.severity === "error");
    return { value: refused ? undefined : result.data, problems };
  }
  return { value: undefined, problems: [...problems, ...result.error.issues.map((issue) => problemOf(issue, at))] };
}

function normalise(schema: z.core.$ZodType, raw: unknown, walk: Walk): unknown {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case "optional":
      return normalise(def.innerType, raw, walk);
    case "object":
      return isRecord(raw) ? normaliseMessage(def.shape, raw, walk) : raw;
    case "record":
      return isRecord(raw) ? normaliseMap(def.valueType, raw, walk) : raw;
    case "array":
      return Array.isArray(raw) ? raw.map((item, i) => normalise(def.element, item, below(walk, i))) : raw;
    default:
      return raw;
  }
}

function normaliseMessage(shape: z.core.$ZodShape, raw: object, walk: Walk): object {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(raw)) {
    const name = Object.hasOwn(shape, key) ? key : camelCase(key);
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (field === undefined) {
      walk.problems.push({
        field: formatField(walk.at, key),
        message: "is not a known field: ignored",
        severity: "warning",
      });
    } else if (Object.hasOwn(result, name)) {
      walk.problems.push({ field: formatField(walk.at, key), message: `is "${name}" again`, severity: "error" });
    } else if (value !== null && value !== undefined && (walk.keepsEmptyLists || !isEmptyList(field, value))) {
      result[name] = normalise(field, value, below(walk, name));
    }
  }
  return result;
}

/** An empty list where none is needed. */
function isEmptyList(field: z.core.$ZodType, value: unknown): boolean {
  const { def } = (field as z.core.$ZodTypes)._zod;
  if (def.type !== "optional" || !Array.isArray(value) || value.length > 0) return false;
  return (def.innerType as z.core.$ZodTypes)._zod.def.type === "array";
}

function normaliseMap(valueType: z.core.$ZodType, raw: object, walk: Walk): object {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(raw)) {
    if (key === "__proto__") {
      walk.problems.push({ field: formatField(walk.at, key), message: "is not a usable key", severity: "error" });
    } else {
      result[key] = normalise(valueType, value, below(walk, key));
    }
  }
  return result;
}

function below(walk: Walk, name: PropertyKey): Walk {
  return { ...walk, at: formatField(walk.at, name) };
}

/** The JSON name of a protobuf field: `retry_on` is `retryOn`. */
function camelCase(name: string): string {
  return name.includes("_") ? name.replace(/_(.?)/g, (_, next: string) => next.toUpperCase()) : name;
}

const CONTAINERS: Readonly<Record<string, string>> = { object: "an object", record: "an object", array: "a list" };

function problemOf(issue: z.core.$ZodIssue, at: string): Problem {
  const field = issue.path.reduce(formatField, at);
  return { field, message: messageOf(issue), severity: "error" };
}

function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code !== "invalid_type") return issue.message;
  const expected = CONTAINERS[issue.expected] ?? issue.expected;
  return /received undefined/.test(issue.message) ? "is required" : `must be ${expected}`;
}
