import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRequestPrincipal, type TextPattern } from "./request-principal.ts";

const shown = (pattern: TextPattern) => (pattern.kind === "any" ? "any" : `${pattern.kind} ${pattern.text}`);

/** Value, issuer, subject. */
const ROWS: readonly (readonly [string, string, string])[] = [
  ["*", "any", "any"],
  ["me/joe", "exact me", "exact joe"],
  ["me/*", "exact me", "any"],
  ["me/j*", "exact me", "prefix j"],
  ["*/joe", "any", "exact joe"],
  ["*e/joe", "suffix e", "exact joe"],
  ["*/*", "any", "exact *"],
  ["*oe", "any", "suffix oe"],
  ["me*", "prefix me", "any"],
  ["me", "exact me", "exact "],
  ["https://me/a/joe", "exact https://me/a", "exact joe"],
  ["https://*/joe", "exact https://*", "exact joe"],
  ["a*/joe", "exact a*", "exact joe"],
  ["a/b/*c", "exact a/b", "exact *c"],
];

for (const [value, issuer, subject] of ROWS) {
  test(`the request principal "${value}" is issuer ${issuer}, subject ${subject}`, () => {
    const parsed = parseRequestPrincipal(value);
    assert.deepEqual([shown(parsed.issuer), shown(parsed.subject)], [issuer, subject]);
  });
}
