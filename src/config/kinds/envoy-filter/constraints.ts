/**
 * The constraints that Envoy's own messages state for themselves (`validate.rules`). Envoy refuses a message that breaks
 * one, and with it everything else in the same resource.
 */
import {
  type DescEnum,
  type DescField,
  type DescMessage,
  fromBinary,
  getOption,
  hasOption,
  type Message,
} from "@bufbuild/protobuf";
import { type ReflectList, type ReflectMap, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import type { Any } from "@bufbuild/protobuf/wkt";
import type { FieldRules } from "#gen/validate/validate_pb.ts";
import { allDescriptors } from "#lib/descriptors.ts";
import { formatField } from "../../schema/field-path.ts";
import { brokenRule, type ValueRules } from "./rules.ts";

/** A constraint that does not hold. */
export interface Violation {
  readonly field: string;
  readonly message: string;
}

/** How much of a message is there: all of it, or only what is to be merged into another. */
export interface Extent {
  readonly partial: boolean;
}

/** All constraints that the message at that path breaks. Of a part of a message only what is set can break one. */
export function brokenConstraints(
  { type, message }: { readonly type: DescMessage; readonly message: Message },
  at: string,
  extent: Extent,
): readonly Violation[] {
  const found: Violation[] = [];
  checkMessage(reflect(type, message), { at, ...extent, found });
  return found;
}

interface Walk extends Extent {
  readonly at: string;
  readonly found: Violation[];
}

function checkMessage(message: ReflectMessage, walk: Walk): void {
  const { desc } = message;
  if (desc.typeName === ANY) checkPacked(message.message as Any, walk);
  if (desc.typeName.startsWith("google.protobuf.")) return;
  if (!walk.partial) checkOneofs(message, walk);
  for (const field of desc.fields) {
    const isSet = message.isSet(field);
    if (isSet || (!walk.partial && field.oneof === undefined)) {
      checkField(message, field, { ...walk, at: formatField(walk.at, field.jsonName) });
    }
  }
}

function checkOneofs(message: ReflectMessage, { at, found }: Walk): void {
  const required = extension("validate.required");
  for (const oneof of message.desc.oneofs) {
    if (message.oneofCase(oneof) !== undefined || !hasOption(oneof, required)) continue;
    if (getOption(oneof, required) !== true) continue;
    const names = oneof.fields.map(({ jsonName }) => jsonName);
    found.push({ field: at, message: `must have one of ${names.join(", ")}` });
  }
}

/** Types that nobody knows, and types that hold JSON for a filter we know nothing of, are left to Envoy. */
function checkPacked({ typeUrl, value }: Any, walk: Walk): void {
  const type = allDescriptors().getMessage(typeUrl.slice(typeUrl.lastIndexOf("/") + 1));
  if (type !== undefined) checkMessage(reflect(type, fromBinary(type, value)), walk);
}

function checkField(message: ReflectMessage, field: DescField, walk: Walk): void {
  const rules = rulesOf(field);
  switch (field.fieldKind) {
    case "list":
      checkList(message.get(field), rules, walk);
      break;
    case "map":
      checkMap(message.get(field), rules, walk);
      break;
    case "message":
      checkInner(message.isSet(field) ? message.get(field) : undefined, rules, walk);
      break;
    case "enum":
      checkEnum(field.enum, message.get(field), { rules, walk });
      break;
    default:
      if (rules !== undefined) report(rules.type, message.get(field), walk);
  }
}

function checkEnum(
  { values }: DescEnum,
  value: number,
  { rules, walk }: { readonly rules: FieldRules | undefined; readonly walk: Walk },
): void {
  if (rules?.type.case !== "enum") return;
  report(rules.type, value, walk);
  if (rules.type.value.definedOnly && !values.some(({ number }) => number === value)) {
    walk.found.push({ field: walk.at, message: `must be a value that exists, not ${value}` });
  }
}

function checkInner(value: ReflectMessage | undefined, rules: FieldRules | undefined, walk: Walk): void {
  if (value === undefined) {
    if (!walk.partial && isRequired(rules)) walk.found.push({ field: walk.at, message: "is required" });
    return;
  }
  if (rules !== undefined) report(rules.type, singleValue(value), walk);
  if (rules?.message?.skip !== true) checkMessage(value, walk);
}

function isRequired(rules: FieldRules | undefined): boolean {
  if (rules === undefined) return false;
  const { type } = rules;
  const ofValue = type.case === "duration" || type.case === "timestamp" || type.case === "any" ? type.value : undefined;
  return rules.message?.required === true || ofValue?.required === true;
}

/** Rules for numbers and texts stand on their wrappers too; those for times on the message. */
function singleValue(value: ReflectMessage): unknown {
  if (!/^google\.protobuf\.\w+Value$/.test(value.desc.typeName)) return value.message;
  const [field] = value.desc.fields;
  return field === undefined ? value.message : value.get(field);
}

function checkList(list: ReflectList, rules: FieldRules | undefined, walk: Walk): void {
  const own = rules?.type.case === "repeated" ? rules.type.value : undefined;
  checkCount({ least: own?.minItems, most: own?.maxItems }, list.size, walk);
  const items = [...list];
  if (own?.unique === true && new Set(items).size < items.length) {
    walk.found.push({ field: walk.at, message: "must not have the same item twice" });
  }
  for (const [i, item] of items.entries()) checkItem(item, own?.items, { ...walk, at: formatField(walk.at, i) });
}

function checkMap(map: ReflectMap, rules: FieldRules | undefined, walk: Walk): void {
  const own = rules?.type.case === "map" ? rules.type.value : undefined;
  checkCount({ least: own?.minPairs, most: own?.maxPairs }, map.size, walk);
  for (const [key, value] of map) {
    const inside = { ...walk, at: formatField(walk.at, String(key)) };
    if (own?.keys !== undefined) report(own.keys.type, key, inside);
    checkItem(value, own?.values, inside);
  }
}

/** A merge adds items to lists and replaces entries of maps: each is there as a whole, whatever it is merged into. */
function checkItem(item: unknown, rules: FieldRules | undefined, walk: Walk): void {
  if (isMessage(item)) checkInner(item, rules, { ...walk, partial: false });
  else if (rules !== undefined) report(rules.type, item, walk);
}

/** A part of a list is not all of it: it can be too long, but not too short. */
function checkCount(
  { least, most }: { readonly least: bigint | undefined; readonly most: bigint | undefined },
  size: number,
  { at, found, partial }: Walk,
): void {
  if (!partial && least !== undefined && size < Number(least)) {
    found.push({ field: at, message: `must have at least ${least} ${least === 1n ? "entry" : "entries"}` });
  }
  if (most !== undefined && most > 0n && size > Number(most)) {
    found.push({ field: at, message: `must have at most ${most} ${most === 1n ? "entry" : "entries"}` });
  }
}

function report(rules: ValueRules, value: unknown, { at, found }: Walk): void {
  const message = brokenRule(rules, value);
  if (message !== undefined) found.push({ field: at, message });
}

const ANY = "google.protobuf.Any";

/** Reading an option decodes it, which takes longer than the checks themselves. */
const knownRules = new WeakMap<DescField, FieldRules | "none">();

function rulesOf(field: DescField): FieldRules | undefined {
  const known = knownRules.get(field) ?? readRules(field);
  knownRules.set(field, known);
  return known === "none" ? undefined : known;
}

function readRules(field: DescField): FieldRules | "none" {
  const rules = extension("validate.rules");
  return hasOption(field, rules) ? (getOption(field, rules) as FieldRules) : "none";
}

function extension(name: string) {
  const found = allDescriptors().getExtension(name);
  if (found === undefined) throw new Error(`No descriptor of "${name}"`);
  return found;
}

function isMessage(value: unknown): value is ReflectMessage {
  return typeof value === "object" && value !== null && "desc" in value && "message" in value;
}
