/** Sprig's functions on numbers. Whole numbers are int64; text is read as a number, and 0 when it is none. */
import { plain } from "../format.ts";
import { wholeArgument } from "../functions.ts";
import { CallError } from "../template-error.ts";
import type { Callable, Value } from "../value.ts";

const LONGEST_LIST = 100_000;

export const NUMBER_FUNCTIONS: Readonly<Record<string, Callable>> = {
  int: (value) => wholeOf(value),
  int64: (value) => wholeOf(value),
  float64: (value) => floatOf(value),
  atoi: (value) => (typeof value === "string" && /^[+-]?\d+$/.test(value) ? BigInt(value) : 0n),
  add: (...values) => int64(values.map(wholeOf).reduce((sum, value) => sum + value, 0n)),
  add1: (value) => int64(wholeOf(value) + 1n),
  sub: (a, b) => int64(wholeOf(a) - wholeOf(b)),
  mul: (first, ...others) => others.map(wholeOf).reduce((product, value) => int64(product * value), wholeOf(first)),
  div: (a, b) => wholeOf(a) / divisor(b),
  mod: (a, b) => wholeOf(a) % divisor(b),
  addf: (...values) => values.map(floatOf).reduce((sum, value) => sum + value, 0),
  add1f: (value) => floatOf(value) + 1,
  subf: (first, ...others) => others.map(floatOf).reduce((left, value) => left - value, floatOf(first)),
  mulf: (first, ...others) => others.map(floatOf).reduce((product, value) => product * value, floatOf(first)),
  divf: (first, ...others) => others.map(floatOf).reduce((left, value) => left / value, floatOf(first)),
  maxf: (first, ...others) => Math.max(floatOf(first), ...others.map(floatOf)),
  minf: (first, ...others) => Math.min(floatOf(first), ...others.map(floatOf)),
  biggest: most,
  max: most,
  min: (first, ...others) =>
    others.map(wholeOf).reduce((least, value) => (value < least ? value : least), wholeOf(first)),
  floor: (value) => Math.floor(floatOf(value)),
  ceil: (value) => Math.ceil(floatOf(value)),
  round: (value, digits) => rounded(floatOf(value), wholeArgument(digits)),
  toDecimal: (value) => {
    const digits = plain(value);
    return /^[0-7]+$/.test(digits) ? BigInt(`0o${digits}`) : 0n;
  },
  seq: (...limits) => counted(limits.map(wholeOf)),
  until: (end) => sequence(0n, wholeOf(end), wholeOf(end) < 0n ? -1n : 1n),
  untilStep: (start, end, step) => sequence(wholeOf(start), wholeOf(end), wholeOf(step)),
};

function most(first: Value, ...others: readonly Value[]): bigint {
  return others.map(wholeOf).reduce((largest, value) => (value > largest ? value : largest), wholeOf(first));
}

/** Go's numbers wrap around. Without it they could fill the memory. */
function int64(value: bigint): bigint {
  return BigInt.asIntN(64, value);
}

/** `seq LAST`, `seq FIRST LAST`, `seq FIRST STEP LAST`, with the last one in it, as the shell's command. */
function counted(limits: readonly bigint[]): string {
  const [a = 0n, b = 0n, c = 0n] = limits;
  if (limits.length === 0 || limits.length > 3) return "";
  const [first, last] = limits.length === 1 ? [1n, a] : [a, limits.length === 2 ? b : c];
  const direction = last < first ? -1n : 1n;
  return sequence(first, last + direction, limits.length === 3 ? b : direction).join(" ");
}

function wholeOf(value: Value): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value === "number") return Number.isFinite(value) ? BigInt(Math.trunc(value)) : 0n;
  if (typeof value === "boolean") return value ? 1n : 0n;
  return typeof value === "string" ? wholeOfText(value) : 0n;
}

/** As Go's literals, with a base; what is behind a point does not count. */
function wholeOfText(value: string): bigint {
  const [, sign = "", digits = ""] =
    /^([+-]?)(0[xX][\da-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|[1-9](?:_?\d)*|0)(?:\.\d*)?$/.exec(value) ?? [];
  const whole = BigInt(digits.replaceAll("_", "").replace(/^0(?=[0-7])/, "0o"));
  return sign === "-" ? -whole : whole;
}

function floatOf(value: Value): number {
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return Number(value);
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : 0;
  return Number.isNaN(number) ? 0 : number;
}

function divisor(value: Value): bigint {
  const whole = wholeOf(value);
  if (whole === 0n) throw new CallError("runtime error: integer divide by zero");
  return whole;
}

function rounded(value: number, digits: number): number {
  const scale = 10 ** digits;
  const scaled = value * scale;
  const whole = Math.trunc(scaled);
  return (Math.abs(scaled - whole) >= 0.5 ? whole + Math.sign(scaled) : whole) / scale;
}

function sequence(start: bigint, end: bigint, step: bigint): readonly Value[] {
  if (step === 0n || (end - start) * step <= 0n) return [];
  if ((end - start) / step > LONGEST_LIST) throw new CallError(`more than ${LONGEST_LIST} items`);
  const items: Value[] = [];
  for (let item = start; step > 0n ? item < end : item > end; item += step) items.push(item);
  return items;
}
