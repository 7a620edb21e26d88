/**
 * Parsing in two pure steps: `normalise` walks the raw value along the schema (names in camelCase, null as unset, unknown
 * fields reported), then zod checks what is left.
 */
import type * as z from "zod";
import { isRecord } from "#lib/json/is-record.ts";
import { formatField } from "./field-path.ts";
import type { Schema } from "./message.ts";
import { nearestName } from "./nearest-name.ts";
import { error, type Parsed, type Problem, warning } from "./problem.ts";
import { RegexBudget } from "./regex-budget.ts";
import { type Salvaged, salvage } from "./salvage.ts";
import { isRegex, isStruct } from "./scalars.ts";

/** What parsing gives; `salvaged` is what can still be checked of a value that is invalid. */
export interface ParsedValue<T> extends Parsed<T> {
  readonly salvaged?: Salvaged<T>;
}

/** Reads a raw value by its schema. `at` is the path of the value inside its object, such as `spec`. */
export function parse<T>(schema: Schema<T>, raw: unknown, at: string): ParsedValue<T> {
  return parseAlong(schema, raw, { at, problems: [], regexes: new RegexBudget(), keepsEmptyLists: true });
}

/**
 * Reads the spec of an object. Nothing lies below it that an empty list could replace, so there such a list is as good as
 * none, as protobuf has it.
 */
export function parseSpec<T>(schema: Schema<T>, raw: unknown): ParsedValue<T> {
  return parseAlong(schema, raw, { at: "spec", problems: [], regexes: new RegexBudget(), keepsEmptyLists: false });
}

const MOST_SUGGESTIONS = 100;
const UNKNOWN_FIELD = "is not a known field: ignored";

/** Whether the problem is a field that the schema does not have. */
export function isUnknownField({ severity, message }: Problem): boolean {
  return severity === "warning" && message.startsWith(UNKNOWN_FIELD);
}

interface Walk {
  readonly at: string;
  readonly problems: Problem[];
  readonly regexes: RegexBudget;
  readonly keepsEmptyLists: boolean;
}

function parseAlong<T>(schema: Schema<T>, raw: unknown, walk: Walk): ParsedValue<T> {
  const { at, problems, regexes } = walk;
  const known = normalise(schema, raw, walk);
  const result = schema.safeParse(known);
  for (const issue of result.error?.issues ?? []) problems.push(problemOf(issue, at));
  const tooExpensive = regexes.problem();
  if (tooExpensive !== undefined) return { value: undefined, problems: [...problems, tooExpensive] };
  if (result.success && problems.every(({ severity }) => severity === "warning"))
    return { value: result.data, problems };
  return { value: undefined, problems, salvaged: salvage(schema, known, at) };
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
      if (isRegex(schema) && typeof raw === "string") walk.regexes.add(raw, walk.at);
      else if (isStruct(schema)) walk.regexes.addAllIn(raw, walk.at);
      return raw;
  }
}

function normaliseMessage(shape: z.core.$ZodShape, raw: object, walk: Walk): object {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(raw)) {
    const name = Object.hasOwn(shape, key) ? key : camelCase(key);
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (field === undefined) {
      walk.problems.push(warning(formatField(walk.at, key), unknownField(key, shape, walk)));
    } else if (Object.hasOwn(result, name)) {
      walk.problems.push(error(formatField(walk.at, key), `is "${name}" again`));
    } else if (value !== null && value !== undefined && (walk.keepsEmptyLists || !isEmptyList(field, value))) {
      result[name] = normalise(field, value, below(walk, name));
    }
  }
  return result;
}

/** Names are compared only for the first problems: nobody reads thousands of suggestions. */
function unknownField(name: string, shape: z.core.$ZodShape, { problems }: Walk): string {
  const meant = problems.length < MOST_SUGGESTIONS ? nearestName(name, Object.keys(shape)) : undefined;
  return `${UNKNOWN_FIELD}${meant === undefined ? "" : `; did you mean "${meant}"?`}`;
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
      walk.problems.push(error(formatField(walk.at, key), "is not a usable key"));
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
