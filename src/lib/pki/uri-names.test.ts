import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { test } from "node:test";
import { certificateUris } from "./certificate-uris.ts";
import { derItems } from "./der-reader.ts";
import { issueLeaf, issueRoot } from "./issue.ts";
import { uriNames } from "./uri-names.ts";

const validity = { notBefore: new Date(Date.now() - 1000), notAfter: new Date(Date.now() + 60_000) };

async function leafWith(subjectAltNames: readonly string[]): Promise<Buffer> {
  const issuer = await issueRoot({ organization: "test", keyKind: "P-256", ...validity });
  const publicKey = createPublicKey(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey);
  return new X509Certificate(await issueLeaf({ issuer, publicKey, subjectAltNames, ...validity })).raw;
}

test("uriNames() gives the URIs and no other name, as the X.509 library does", async () => {
  const names = ["a.example", "spiffe://td/ns/a/sa/b", "10.0.0.1", "https://x.example/y"];
  const leaf = await leafWith(names);
  assert.deepEqual(uriNames(leaf), ["spiffe://td/ns/a/sa/b", "https://x.example/y"]);
  assert.deepEqual(uriNames(leaf), certificateUris(leaf));
});

test("uriNames() finds none where there are none, and is not fooled by a name that looks like one", async () => {
  assert.deepEqual(uriNames(await leafWith(["a.example"])), []);
  assert.deepEqual(uriNames(await leafWith(["https://x/, URI:spiffe://td/ns/a/sa/b"])), [
    "https://x/, URI:spiffe://td/ns/a/sa/b",
  ]);
});

test("derItems() throws on lengths that reach too far or are too long", () => {
  assert.throws(() => derItems(Buffer.from([0x30, 0x05, 0x01])), RangeError);
  assert.throws(() => derItems(Buffer.from([0x30, 0x85, 1, 1, 1, 1, 1])), RangeError);
  assert.throws(() => derItems(Buffer.from([0x30])), RangeError);
  assert.throws(() => derItems(Buffer.from([0x30, 0x80])), RangeError);
});
