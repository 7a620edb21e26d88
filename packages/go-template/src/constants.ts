/** Constants of Go's syntax. */
import { unquoteGo } from "@mizzen/go-text/quoted-string";
import type { Value } from "./value.ts";

const LARGEST_INT = 2n ** 63n - 1n;

/** A whole number or a float; undefined when it is too large. */
export function numberOf(source: string): Value | undefined {
  const plain = source.replaceAll("_", "");
  const sign = plain.startsWith("-") ? -1n : 1n;
  const digits = plain.replace(/^[+-]/, "");
  if (/^(0[xXbBoO][0-9a-fA-F]+|\d+)$/.test(digits)) {
    const octal = /^0\d+$/.test(digits);
    if (octal && /[89]/.test(digits)) return undefined;
    const value = sign * BigInt(octal ? `0o${digits}` : digits);
    return value > LARGEST_INT || value < -LARGEST_INT - 1n ? undefined : value;
  }
  const value = Number(plain);
  if (!Number.isFinite(value)) return undefined;
  return value;
}

/** The code of a letter in single quotes. */
export function characterOf(source: string): bigint | undefined {
  const text = unquoteGo(source);
  const points = [...(text ?? "")];
  return points.length === 1 ? BigInt(points[0]?.codePointAt(0) ?? 0) : undefined;
}
