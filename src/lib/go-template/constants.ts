/** Constants of Go's syntax. */
import type { Value } from "./value.ts";

const ESCAPES: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  '"': '"',
  "'": "'",
};
const ESCAPE = /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))/gs;
const LARGEST_INT = 2n ** 63n - 1n;

/** The text of a quoted or raw string; undefined when it has an escape that there is not. */
export function unquoted(source: string): string | undefined {
  const body = source.slice(1, -1);
  if (source.startsWith("`")) return body.replaceAll("\r", "");
  if (!body.includes("\\")) return body;
  const parts: Buffer[] = [];
  let end = 0;
  for (const match of body.matchAll(ESCAPE)) {
    const [whole, byte, short, long, octal, letter = ""] = match;
    const bytes = escapedBytes({ byte, octal, point: short ?? long, letter });
    if (bytes === undefined) return undefined;
    parts.push(Buffer.from(body.slice(end, match.index)), bytes);
    end = match.index + whole.length;
  }
  return Buffer.concat([...parts, Buffer.from(body.slice(end))]).toString();
}

interface Escape {
  readonly byte: string | undefined;
  readonly octal: string | undefined;
  readonly point: string | undefined;
  readonly letter: string;
}

function escapedBytes({ byte, octal, point, letter }: Escape): Buffer | undefined {
  if (byte !== undefined) return Buffer.from(byte, "hex");
  if (octal !== undefined)
    return Number.parseInt(octal, 8) > 255 ? undefined : Buffer.from([Number.parseInt(octal, 8)]);
  if (point !== undefined) {
    const code = Number.parseInt(point, 16);
    return code > 0x10ffff ? undefined : Buffer.from(String.fromCodePoint(code));
  }
  const text = ESCAPES[letter];
  return text === undefined ? undefined : Buffer.from(text);
}

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
  const text = unquoted(source);
  const points = [...(text ?? "")];
  return points.length === 1 ? BigInt(points[0]?.codePointAt(0) ?? 0) : undefined;
}
