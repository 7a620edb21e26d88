import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { before, describe, test } from "node:test";
import { issueRoot } from "./issue.ts";
import { parseSpiffeBundle } from "./spiffe-bundle.ts";

describe("parseSpiffeBundle()", () => {
  let root: X509Certificate;
  before(async () => {
    const [notBefore, notAfter] = [new Date(), new Date(Date.now() + 86_400_000)];
    root = (await issueRoot({ organization: "other.example", keyKind: "P-256", notBefore, notAfter })).certificate;
  });
  const entry = (more: object = {}) => ({ use: "x509-svid", kty: "EC", x5c: [root.raw.toString("base64")], ...more });
  const bundle = (...keys: readonly unknown[]) => JSON.stringify({ spiffe_sequence: 1, keys });

  test("takes the certificates of keys for x509-svid and leaves those for tokens", () => {
    const roots = parseSpiffeBundle(bundle(entry(), { use: "jwt-svid", kid: "a" }, "nonsense"));
    assert.deepEqual(
      roots.map((pem) => new X509Certificate(pem).fingerprint256),
      [root.fingerprint256],
    );
  });

  for (const [what, text] of [
    ["no JSON", () => "<html>"],
    ["no object", () => "[]"],
    ["no keys", () => "{}"],
    ["keys for tokens alone", () => bundle({ use: "jwt-svid" })],
    ["a key without certificate", () => bundle(entry({ x5c: [] }))],
    ["a key with two certificates", () => bundle(entry({ x5c: [...entry().x5c, ...entry().x5c] }))],
    ["a certificate that is a number", () => bundle(entry({ x5c: [1] }))],
    ["a broken certificate among good ones", () => bundle(entry(), entry({ x5c: ["AAAA"] }))],
  ] as const) {
    test(`refuses ${what}`, () => {
      assert.throws(() => parseSpiffeBundle(text()));
    });
  }
});
