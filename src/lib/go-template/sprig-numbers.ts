/** Sprig's functions on numbers. Whole numbers are int64; text is read as a number, and 0 when it is none. */
import { wholeArgument } from "./functions.ts";
import { CallError } from "./template-error.ts";
import type { Callable, Value } from "./value.ts";

const LONGEST_LIST = 100_000;

export const NUMBER_FUNCTIONS: Readonly<Record<string, Callable>> = {
  int: (value) => wholeOf(value),
  int64: (value) => wholeOf(value),
  float64: (value) => floatOf(value),
  atoi: (value) => (typeof value === "string" && /^[+-]?\d+$/.test(value) ? BigInt(value) : 0n),
  add: (...values) => values.map(wholeOf).reduce((sum, value) => sum + value, 0n),
  add1: (value) => wholeOf(value) + 1n,
  sub: (a, b) => wholeOf(a) - wholeOf(b),
  mul: (first, ...others) => others.map(wholeOf).reduce((product, value) => product * value, wholeOf(first)),
  div: (a, b) => wholeOf(a) / divisor(b),
  mod: (a, b) => wholeOf(a) % divisor(b),
  max: (first, ...others) => others.map(wholeOf).reduce((most, value) => (value > most ? value : most), wholeOf(first)),
  min: (first, ...others) =>
    others.map(wholeOf).reduce((least, value) => (value < least ? value : least), wholeOf(first)),
  floor: (value) => Math.floor(floatOf(value)),
  ceil: (value) => Math.ceil(floatOf(value)),
  round: (value, digits) => rounded(floatOf(value), wholeArgument(digits)),
  until: (end) => sequence(0n, wholeOf(end), wholeOf(end) < 0n ? -1n : 1n),
  untilStep: (start, end, step) => sequence(wholeOf(start), wholeOf(end), wholeOf(step)),
};

function wholeOf(value: Value): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value === "number") return Number.isFinite(value) ? BigInt(Math.trunc(value)) : 0n;
  if (typeof value === "boolean") return value ? 1n : 0n;
  if (typeof value !== "string") return 0n;
  return /^[+-]?\d+$/.test(value) ? BigInt(value) : 0n;
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
