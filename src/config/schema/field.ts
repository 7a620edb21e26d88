/**
 * What a schema says about a value beyond reading it: its description for `kubectl explain`, and what the API server checks
 * by itself, as in Istio's definitions. Our own checks do not depend on it.
 */
import * as z from "zod";
import type { Schema } from "./message.ts";

/** Facts about a value. The API server uses the bounds to estimate the cost of rules, too. */
export interface Facts {
  readonly description?: string;
  readonly nullable?: true;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  /** The field that identifies an item of the list. */
  readonly listKey?: string;
  readonly rules?: readonly Rule[];
  /** Whether the API server rejects a message without the field; by default if the field is `required()`. */
  readonly isRequired?: boolean;
  /** An earlier spelling of the field's name, which the API server accepts too. */
  readonly formerName?: string;
  /** The fields of this message are not described here: another kind or field describes them. */
  readonly isBrief?: true;
}

/** An expression in CEL that has to hold, and the message if it does not. */
export interface Rule {
  readonly rule: string;
  readonly message: string;
}

/** Apart from the metadata of zod, which JSON Schemas for editors show. */
const FACTS = z.registry<Facts>();

/** The same schema with facts about its values at this place. They replace equally named facts of the schema. */
export function field<T>(schema: Schema<T>, facts: Facts): Schema<T> {
  const own = schema.clone();
  FACTS.add(own, facts);
  return own;
}

/** What `field()` declared about a schema. */
export function factsOf(schema: z.core.$ZodType): Facts {
  return FACTS.get(schema) ?? {};
}

/** A rule of the API server. */
export function rule(expression: string, message: string): Rule {
  return { rule: expression, message };
}

/** The rule that at most one of the fields of a message is set. */
export function atMostOne(fields: readonly string[], message: string): Rule {
  return rule(`${fields.map((name) => `(has(self.${name}) ? 1 : 0)`).join(" + ")} <= 1`, message);
}
