import assert from "node:assert/strict";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { test } from "node:test";
import { issueLeaf, issueRoot } from "#lib/pki/issue.ts";
import type { Caller } from "#model/ports.ts";
import { authenticatorChain } from "./authenticator.ts";
import { clientCertificateAuthenticator } from "./client-certificate.ts";

const NOBODY = { authorization: undefined, certificate: undefined };
const CALLER: Caller = { identity: "spiffe://a/ns/b/sa/c", namespace: "b", serviceAccount: "c", provedBy: "jwt" };

test("authenticatorChain() takes the first that proves an identity", async () => {
  const chain = authenticatorChain([
    async () => undefined,
    async () => ({ refused: "no" }),
    async () => ({ caller: CALLER }),
  ]);
  assert.deepEqual(await chain(NOBODY), { caller: CALLER });
});

test("authenticatorChain() gives all reasons when none does", async () => {
  const chain = authenticatorChain([
    async () => ({ refused: "bad certificate" }),
    async () => ({ refused: "bad token" }),
  ]);
  assert.deepEqual(await chain(NOBODY), { refused: "bad certificate; bad token" });
});

test("authenticatorChain() says what to send when nothing was shown", async () => {
  assert.deepEqual(await authenticatorChain([async () => undefined])(NOBODY), {
    refused: "no bearer token and no client certificate of the mesh",
  });
});

async function certificate(...subjectAltNames: string[]): Promise<Buffer> {
  const validity = { notBefore: new Date(0), notAfter: new Date(Date.now() + 1e9) };
  const issuer = await issueRoot({ organization: "test", keyKind: "P-256", ...validity });
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  return new X509Certificate(await issueLeaf({ issuer, publicKey, subjectAltNames, ...validity })).raw;
}

const authenticate = clientCertificateAuthenticator(() => ["cluster.local", "old.domain", "me@here"]);

test("clientCertificateAuthenticator() reads the identity of a certificate", async () => {
  const identity = "spiffe://cluster.local/ns/default/sa/httpbin";
  assert.deepEqual(await authenticate({ ...NOBODY, certificate: await certificate(identity, "some.dns.name") }), {
    caller: { identity, namespace: "default", serviceAccount: "httpbin", provedBy: "certificate" },
  });
});

for (const domain of ["old.domain", "me.here"]) {
  test(`clientCertificateAuthenticator() believes the trust domain ${domain}, and leaves the identity as it is`, async () => {
    const identity = `spiffe://${domain}/ns/default/sa/httpbin`;
    const result = await authenticate({ ...NOBODY, certificate: await certificate(identity) });
    assert.ok(result !== undefined && "caller" in result);
    assert.equal(result.caller.identity, identity);
  });
}

test("clientCertificateAuthenticator() has nothing to say without a certificate", async () => {
  assert.equal(await authenticate(NOBODY), undefined);
});

const BAD: Readonly<Record<string, readonly string[]>> = {
  "without a URI": ["istiod.istio-system.svc"],
  "with two identities": ["spiffe://cluster.local/ns/a/sa/b", "spiffe://cluster.local/ns/c/sa/d"],
  "with a URI that is no identity": ["https://cluster.local/ns/a/sa/b"],
  "of another trust domain": ["spiffe://other/ns/a/sa/b"],
  "whose DNS name looks like a list with an identity": ["x, URI:spiffe://cluster.local/ns/a/sa/b, y"],
};
for (const [what, names] of Object.entries(BAD)) {
  test(`clientCertificateAuthenticator() refuses a certificate ${what}`, async () => {
    const result = await authenticate({ ...NOBODY, certificate: await certificate(...names) });
    assert.ok(result !== undefined && "refused" in result);
  });
}
