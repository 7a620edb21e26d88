/** Rules for single values, as `validate.rules` of Envoy's messages state them. */
import { isIP, isIPv4, isIPv6 } from "node:net";
import { formatDuration } from "@mizzen/go-text/duration";
import { RE2JS } from "re2js";
import type { BytesRules, EnumRules, FieldRules, Int64Rules, StringRules } from "#gen/validate/validate_pb.ts";

/** The rules for one field, by the kind of its value. */
export type ValueRules = FieldRules["type"];

/** What a value breaks, in words; undefined when it keeps all rules. */
export function brokenRule(rules: ValueRules, value: unknown): string | undefined {
  switch (rules.case) {
    case undefined:
    case "repeated":
    case "map":
    case "any":
      return undefined;
    case "bool":
      return isSet(rules.value, "const") && value !== rules.value.const ? `must be ${rules.value.const}` : undefined;
    case "string":
      return brokenText(rules.value, String(value));
    case "bytes":
      return brokenBytes(rules.value, value as Uint8Array);
    case "enum":
      return brokenEnum(rules.value, Number(value));
    case "duration":
      return brokenAmount(momentRules(rules.value), momentOf(value as Moment), formatNanos);
    case "timestamp":
      return brokenAmount(momentRules(rules.value), momentOf(value as Moment), String);
    default:
      return brokenAmount(rules.value, value as Amount, String);
  }
}

type Amount = number | bigint;
type AmountRules = Partial<Record<"const" | "lt" | "lte" | "gt" | "gte", Amount>> & {
  readonly in?: readonly Amount[];
  readonly notIn?: readonly Amount[];
  readonly ignoreEmpty?: boolean;
};
interface Moment {
  readonly seconds: bigint;
  readonly nanos: number;
}

/** Unset rules stand on the prototype with their default; only own fields count. */
function isSet<Rules extends object>(rules: Rules, name: keyof Rules): boolean {
  return Object.hasOwn(rules, name);
}

type FormatAmount = (value: Amount) => string;

function brokenAmount(rules: AmountRules | Int64Rules, value: Amount, format: FormatAmount): string | undefined {
  const given: AmountRules = { ...rules } as AmountRules;
  if (given.ignoreEmpty === true && Number(value) === 0) return undefined;
  if (given.const !== undefined && value !== given.const) return `must be ${format(given.const)}`;
  const above = given.gt !== undefined ? value > given.gt : given.gte === undefined || value >= given.gte;
  const below = given.lt !== undefined ? value < given.lt : given.lte === undefined || value <= given.lte;
  if (!inRange(given, above, below)) return `must be ${rangeText(given, format)}, not ${format(value)}`;
  return brokenMembership(given, value);
}

/** A lower limit above the upper one means what is outside of the two. */
function inRange(rules: AmountRules, above: boolean, below: boolean): boolean {
  const [least, most] = [rules.gt ?? rules.gte, rules.lt ?? rules.lte];
  return least !== undefined && most !== undefined && least > most ? above || below : above && below;
}

function rangeText({ gt, gte, lt, lte }: AmountRules, format: FormatAmount): string {
  const limits = [
    gt === undefined ? [] : [`above ${format(gt)}`],
    gte === undefined ? [] : [`at least ${format(gte)}`],
    lt === undefined ? [] : [`below ${format(lt)}`],
    lte === undefined ? [] : [`at most ${format(lte)}`],
  ];
  return limits.flat().join(" and ");
}

function brokenMembership<T>(
  rules: { readonly in?: readonly T[] | undefined; readonly notIn?: readonly T[] | undefined },
  value: T,
): string | undefined {
  const { in: allowed = [], notIn: forbidden = [] } = rules;
  if (allowed.length > 0 && !allowed.includes(value)) return `must be one of ${allowed.join(", ")}, not ${value}`;
  return forbidden.includes(value) ? `must not be ${value}` : undefined;
}

function formatNanos(nanos: Amount): string {
  return formatDuration(Number(nanos) / 1e6);
}

/** Times as nanoseconds. */
function momentOf({ seconds, nanos }: Moment): bigint {
  return seconds * 1_000_000_000n + BigInt(nanos);
}

function momentRules(rules: object): AmountRules {
  const limits = Object.entries(rules)
    .filter(([name]) => ["const", "lt", "lte", "gt", "gte"].includes(name))
    .map(([name, moment]) => [name, momentOf(moment as Moment)]);
  return Object.fromEntries(limits);
}

function brokenEnum(rules: EnumRules, value: number): string | undefined {
  if (isSet(rules, "const") && value !== rules.const) return `must be ${rules.const}`;
  return brokenMembership(rules, value);
}

function brokenBytes(rules: BytesRules, value: Uint8Array): string | undefined {
  return brokenLength({ ...rules }, value.length, "bytes");
}

function brokenText(rules: StringRules, value: string): string | undefined {
  if (rules.ignoreEmpty && value === "") return undefined;
  if (isSet(rules, "const") && value !== rules.const) return `must be "${rules.const}"`;
  const { minBytes: minLen, maxBytes: maxLen, lenBytes: len } = { ...rules };
  return (
    brokenLength({ ...rules }, [...value].length, "characters") ??
    brokenLength(withoutUnset({ minLen, maxLen, len }), Buffer.byteLength(value), "bytes") ??
    brokenShape(rules, value) ??
    brokenMembership(rules, value)
  );
}

interface LengthRules {
  readonly len?: bigint;
  readonly minLen?: bigint;
  readonly maxLen?: bigint;
}

function brokenLength({ len, minLen, maxLen }: LengthRules, length: number, unit: string): string | undefined {
  if (len !== undefined && BigInt(length) !== len) return `must have ${len} ${unit}`;
  if (minLen !== undefined && BigInt(length) < minLen) {
    return minLen === 1n ? "must not be empty" : `must have at least ${minLen} ${unit}`;
  }
  return maxLen !== undefined && BigInt(length) > maxLen ? `must have at most ${maxLen} ${unit}` : undefined;
}

function withoutUnset(rules: Readonly<Record<string, bigint | undefined>>): LengthRules {
  return Object.fromEntries(Object.entries(rules).filter(([, value]) => value !== undefined));
}

/** Envoy's own messages have a handful of patterns. */
const PATTERNS = new Map<string, RE2JS>();

function patternOf({ pattern }: StringRules): RE2JS {
  const known = PATTERNS.get(pattern) ?? RE2JS.compile(pattern);
  PATTERNS.set(pattern, known);
  return known;
}

function brokenShape(rules: StringRules, value: string): string | undefined {
  if (isSet(rules, "pattern") && !patternOf(rules).matcher(value).find()) {
    return `must match ${rules.pattern}`;
  }
  if (isSet(rules, "prefix") && !value.startsWith(rules.prefix)) return `must begin with "${rules.prefix}"`;
  if (isSet(rules, "suffix") && !value.endsWith(rules.suffix)) return `must end with "${rules.suffix}"`;
  if (isSet(rules, "contains") && !value.includes(rules.contains)) return `must contain "${rules.contains}"`;
  if (isSet(rules, "notContains") && value.includes(rules.notContains)) {
    return `must not contain "${rules.notContains}"`;
  }
  const { wellKnown } = rules;
  if (wellKnown.case === undefined) return undefined;
  if (wellKnown.case === "wellKnownRegex") return brokenHeader(wellKnown.value, rules.strict, value);
  return WELL_KNOWN[wellKnown.case](value) ? undefined : `must be a valid ${wellKnown.case}`;
}

const HOSTNAME = /^(?=.{1,253}$)(?:[A-Za-z0-9](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9][-A-Za-z0-9]{0,62}\.?$/;
const isHostname = (value: string) => HOSTNAME.test(value);

type WellKnown = Exclude<NonNullable<StringRules["wellKnown"]["case"]>, "wellKnownRegex">;
const WELL_KNOWN: Readonly<Record<WellKnown, (value: string) => boolean>> = {
  email: (value) => /^[^@\s]+@[^@\s]+$/.test(value),
  hostname: isHostname,
  ip: (value) => isIP(value) > 0,
  ipv4: (value) => isIPv4(value),
  ipv6: (value) => isIPv6(value),
  uri: (value) => URL.canParse(value),
  uriRef: (value) => URL.canParse(value, "http://base/"),
  address: (value) => isIP(value) > 0 || isHostname(value),
  uuid: (value) => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value),
};

const HEADER_NAME = 1;
const STRICT_NAME = /^:?[0-9a-zA-Z!#$%&'*+\-.^_|~`]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be in a header
const STRICT_VALUE = /^[^\u0000-\u0008\u000a-\u001f\u007f]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be in a header
const LOOSE = /^[^\u0000\n\r]*$/;

function brokenHeader(kind: number, strict: boolean, value: string): string | undefined {
  const allowed = !strict ? LOOSE : kind === HEADER_NAME ? STRICT_NAME : STRICT_VALUE;
  if (allowed.test(value)) return undefined;
  return kind === HEADER_NAME ? "must be the name of a header" : "must be the value of a header";
}
