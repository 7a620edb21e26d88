/**
 * What is left of a value that breaks its schema. Checks run on it, so that one field of the wrong type does not hide what
 * else is wrong. The result is for checks alone and must never have an effect.
 */
import type * as z from "zod";
import { isRecord } from "#lib/json/is-record.ts";
import { formatField } from "./field-path.ts";
import type { Schema } from "./message.ts";
import { isEnumeration } from "./scalars.ts";

/** A value of the schema's type, and the messages in which a choice such as a mode could not be read. */
export interface Salvaged<T> {
  readonly value: T;
  /** Their paths: what fits the choice that was meant cannot be told there. */
  readonly undecided: ReadonlySet<string>;
}

/** Puts something valid in the place of each invalid field: what was probably meant, otherwise nothing or a zero value. */
export function salvage<T>(schema: Schema<T>, raw: unknown, at: string): Salvaged<T> {
  const undecided = new Set<string>();
  // By construction it is what the schema yields; the compiler cannot know.
  const value = salvaged(schema, raw, { parent: "", at, undecided }) as T;
  return { value, undecided };
}

interface Walk {
  readonly parent: string;
  readonly at: string;
  readonly undecided: Set<string>;
}

function salvaged(schema: z.core.$ZodType, raw: unknown, walk: Walk): unknown {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  const below = (name: PropertyKey): Walk => ({ ...walk, parent: walk.at, at: formatField(walk.at, name) });
  switch (def.type) {
    case "optional":
      return raw === undefined ? undefined : optional(def.innerType, raw, walk);
    case "object": {
      const given = isRecord(raw) ? raw : {};
      const fields = Object.entries(def.shape).map(([name, of]) => [name, salvaged(of, given[name], below(name))]);
      return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
    }
    case "record": {
      const entries = isRecord(raw) ? Object.entries(raw) : [];
      return Object.fromEntries(entries.map(([key, item]) => [key, salvaged(def.valueType, item, below(key))]));
    }
    case "array": {
      const items: readonly unknown[] = Array.isArray(raw) ? raw : raw === undefined ? [] : [raw];
      return items.map((item, i) => salvaged(def.element, item, below(i)));
    }
    default:
      return scalar(schema, raw, walk) ?? ZEROS.map((zero) => validOf(schema, zero)).find((zero) => zero !== undefined);
  }
}

/** A field that need not be there is left out rather than made up. */
function optional(schema: z.core.$ZodType, raw: unknown, walk: Walk): unknown {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type === "object" || def.type === "record") return isRecord(raw) ? salvaged(schema, raw, walk) : undefined;
  return def.type === "array" ? salvaged(schema, raw, walk) : scalar(schema, raw, walk);
}

/** YAML takes `1` and `on` for other types than text. */
function scalar(schema: z.core.$ZodType, raw: unknown, { parent, undecided }: Walk): unknown {
  const value = validOf(schema, raw) ?? (typeof raw === "object" ? undefined : validOf(schema, String(raw)));
  if (value === undefined && isEnumeration(schema)) undecided.add(parent);
  return value;
}

/** One of them is valid for each type of scalar. */
const ZEROS: readonly unknown[] = ["", 0, false, "0s", {}, "1970-01-01T00:00:00Z"];

function validOf(schema: z.core.$ZodType, raw: unknown): unknown {
  const result = (schema as z.ZodType).safeParse(raw);
  return result.success ? result.data : undefined;
}
