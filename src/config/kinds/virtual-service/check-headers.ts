/** Names and values of HTTP headers. */

import { formatField } from "../../schema/field-path.ts";
import { error, type Problem } from "../../schema/problem.ts";
import type { HeaderOperations, Headers } from "./schema.ts";

const NAME = /^[!#$%&'*+\-.^_`|~A-Za-z0-9]+$/;
const PSEUDO_HEADERS: ReadonlySet<string> = new Set([":method", ":scheme", ":authority", ":path", ":status"]);
const JWT_CLAIM = /^@request\.auth\.claims(\..+|\[.+\])$/is;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a header must not contain
const CONTROL_CHARACTERS = /[\0-\x08\x0a-\x1f\x7f]/;
/**
 * Text in which `%` stands twice, or around a variable with or without arguments: `%START_TIME(%s)%`, `%REQ(X)%`,
 * `%UPSTREAM_METADATA(["ns", "key"])%`. The parts exclude one another, so matching takes linear time.
 */
const STRING = String.raw`(?:\\.|[^\\")])*`;
const ARGUMENTS = String.raw`\( *(?:\[ *"|[^ \[])${STRING}(?:" *, *"${STRING})*(?:\)|" *\] *\)) *%`;
const VALUE = new RegExp(`^(?:[^%]|%%|%(?!%)[^%(]*(?:%|${ARGUMENTS}))*$`, "s");

/** Whether the name stands for a claim of the caller's token instead of a header. */
export function isJwtClaim(name: string): boolean {
  return JWT_CLAIM.test(name);
}

/** The name of a header that is matched: also a pseudo header or a claim of the caller's token. */
export function* checkMatchedHeader(name: string, at: string): Iterable<Problem> {
  if (isJwtClaim(name) || PSEUDO_HEADERS.has(name) || NAME.test(name)) return;
  yield error(formatField(at, name), "is not a valid name of a header");
}

/** Whether a text has characters with which Envoy takes it for no part of a header, and rejects everything beside it. */
export function hasLineBreak(text: string): boolean {
  return /[\0\r\n]/.test(text);
}

/** The plain name of a header: letters, digits, dashes and underscores. */
export function* checkHeaderName(name: string, at: string): Iterable<Problem> {
  if (!/^[-_A-Za-z0-9]+$/.test(name)) yield error(at, `must be a valid name of a header, not "${name}"`);
}

/** The name of a header in a CORS policy. */
export function* checkCorsHeader(name: string, at: string): Iterable<Problem> {
  if (name !== "*" && !NAME.test(name)) yield error(at, `must be a valid name of a header, not "${name}"`);
}

/** Headers that a route sets, adds and removes. The authority may be set in requests only. */
export function* checkHeaders(headers: Headers | undefined, at: string): Iterable<Problem> {
  yield* checkOperations(headers?.request, `${at}.request`, true);
  yield* checkOperations(headers?.response, `${at}.response`, false);
}

/** Whether the header carries the host that the request asks for. */
export function isAuthority(name: string): boolean {
  return /^(:authority|host)$/i.test(name);
}

function* checkOperations(
  operations: HeaderOperations | undefined,
  at: string,
  authorityAllowed: boolean,
): Iterable<Problem> {
  for (const verb of ["set", "add"] as const) {
    for (const [name, value] of Object.entries(operations?.[verb] ?? {})) {
      const field = formatField(`${at}.${verb}`, name);
      if (!(authorityAllowed && isAuthority(name))) yield* checkChangedHeader(name, field);
      yield* checkHeaderValue(value, field);
    }
  }
  for (const [i, name] of (operations?.remove ?? []).entries()) {
    yield* checkChangedHeader(name, `${at}.remove[${i}]`);
  }
}

function* checkChangedHeader(name: string, at: string): Iterable<Problem> {
  if (name === "") yield error(at, "must not be empty");
  if (/^host$/i.test(name)) yield error(at, "cannot change the Host header here");
  if (name.startsWith(":")) yield error(at, `cannot change the pseudo header "${name}"`);
}

function* checkHeaderValue(value: string, at: string): Iterable<Problem> {
  if (CONTROL_CHARACTERS.test(value)) yield error(at, "must not contain control characters");
  if (!VALUE.test(value)) {
    yield error(at, `must have each "%" twice or around a variable such as %REQ(X)%, not "${value}"`);
  }
}
