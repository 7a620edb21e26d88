/** What values of environment variables may be; those of flags that are meant alike too. */
import { isIP } from "node:net";
import { type Millis, parseDuration } from "@mizzen/go-text/duration";
import { parseGoBool } from "../go/go-bool.ts";

/** A kind of value. */
export interface EnvKind<T> {
  /** What a value must be, as the end of a sentence. */
  readonly wanted: string;
  /** Undefined for a text that is no such value. */
  readonly parse: (text: string) => T | undefined;
}

export const BOOLEAN: EnvKind<boolean> = { wanted: "true or false", parse: parseGoBool };
/** From 0, as far as numbers are exact. */
export const WHOLE_NUMBER: EnvKind<number> = {
  wanted: "a whole number",
  parse: (text) => (isGoInteger(text) ? within(text, 0, Number.MAX_SAFE_INTEGER) : undefined),
};
/** From 0 to the one that is given. */
export function wholeNumberTo(most: number): EnvKind<number> {
  const parse = (text: string) => (isGoInteger(text) ? within(text, 0, most) : undefined);
  return { wanted: `a whole number up to ${most}`, parse };
}
/** A port, or 0 for any that is free. */
export const PORT_TO_OPEN: EnvKind<number> = { ...wholeNumberTo(65_535), wanted: "a port from 0 to 65535" };
export const RATIO: EnvKind<number> = { wanted: "a number from 0 to 1", parse: (text) => within(text, 0, 1) };
/** With fractions. */
export const PERCENT: EnvKind<number> = { wanted: "a number from 0 to 100", parse: (text) => within(text, 0, 100) };
export const DURATION: EnvKind<Millis> = { wanted: 'a duration such as "5s"', parse: parseDuration };
/** A duration that is not 0. */
export const LIFETIME: EnvKind<Millis> = {
  wanted: 'a duration above 0 such as "24h"',
  parse: (text) => (Number(parseDuration(text)) > 0 ? parseDuration(text) : undefined),
};

/** Ranges of addresses, separated by commas. */
export const RANGES: EnvKind<readonly string[]> = {
  wanted: "ranges of addresses such as 10.0.0.0/8",
  parse: (text) => (parseList(text).every(isRange) ? parseList(text) : undefined),
};

/** An address and the number of its bits that count. */
function isRange(text: string): boolean {
  const [net = "", bits = "", ...rest] = text.split("/");
  const most = net.includes(":") ? 128 : 32;
  return isIP(net) !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= most && rest.length === 0;
}

/** Says that a value is none of its kind. */
export function wrongValue(name: string, wanted: string, text: string): string {
  return `${name}: must be ${wanted}, not "${text}"`;
}

/** Whether Go reads it as a whole number. */
export function isGoInteger(text: string): boolean {
  return /^[+-]?\d+$/.test(text);
}

/** Texts separated by commas; empty ones do not count. */
export function parseList(text: string): readonly string[] {
  return text.split(",").flatMap((item) => item.trim() || []);
}

function within(text: string, least: number, most: number): number | undefined {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  return value >= least && value <= most ? value : undefined;
}
