import assert from "node:assert/strict";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { before, describe, test } from "node:test";
import { certificateRequest } from "#lib/pki/csr.ts";
import { CLOCK_SKEW_MS, lifetime } from "../keys/lifetime.ts";
import { selfSignedCa } from "../keys/self-signed.ts";
import { type CaFiles, signingBundle } from "../keys/signing-bundle.ts";
import { Authority } from "./authority.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Certificates count in seconds. */
const NOW = Math.floor(Date.now() / 1000) * 1000;
const IDENTITY = "spiffe://cluster.local/ns/default/sa/httpbin";

function csr(identity = "spiffe://cluster.local/ns/kube-system/sa/admin"): string {
  return certificateRequest({ identity, ...generateKeyPairSync("ec", { namedCurve: "prime256v1" }) });
}

describe("Authority", () => {
  let files: CaFiles;
  before(async () => {
    files = await selfSignedCa({ trustDomain: "cluster.local", lifetimeMs: 10 * DAY, keyKind: "P-256", now: NOW });
  });

  function authority(): Authority {
    return new Authority(signingBundle(files, NOW), { defaultTtlMs: DAY, maxTtlMs: 2 * DAY, now: () => NOW });
  }

  async function signed(ttlSeconds: number): Promise<X509Certificate> {
    const [leaf = ""] = await authority().sign({ csrPem: csr(), identity: IDENTITY, ttlSeconds });
    return new X509Certificate(leaf);
  }

  test("answers with the leaf first and the root last", async () => {
    const chain = await authority().sign({ csrPem: csr(), identity: IDENTITY, ttlSeconds: 0 });
    assert.equal(chain.length, 2);
    assert.equal(chain[1], files.rootPem);
    const leaf = new X509Certificate(chain[0] ?? "");
    assert.ok(leaf.checkIssued(new X509Certificate(files.rootPem)));
  });

  test("gives the caller's identity, whatever the CSR asks for", async () => {
    const leaf = await signed(0);
    assert.equal(leaf.subjectAltName, `URI:${IDENTITY}`);
    assert.equal(leaf.subject, undefined);
    assert.equal(leaf.ca, false);
  });

  test("gives the lifetime that is asked for, the default when none is, and no more than the maximum", async () => {
    assert.equal((await signed(3600)).validToDate.getTime(), NOW + HOUR);
    assert.equal((await signed(0)).validToDate.getTime(), NOW + DAY);
    assert.equal((await signed(-5)).validToDate.getTime(), NOW + DAY);
    assert.equal((await signed(365 * 86_400)).validToDate.getTime(), NOW + 2 * DAY);
    assert.equal((await signed(3600)).validFromDate.getTime(), NOW - CLOCK_SKEW_MS);
  });

  test("signs with what replaced its files", async () => {
    const ca = authority();
    const next = await selfSignedCa({ trustDomain: "other", lifetimeMs: DAY, keyKind: "P-256", now: NOW });
    let told = 0;
    ca.onReplaced(() => told++);
    ca.replace(signingBundle(next, NOW));
    const chain = await ca.sign({ csrPem: csr(), identity: IDENTITY, ttlSeconds: 60 });
    assert.equal(chain[1], next.rootPem);
    assert.equal(ca.trustBundle(), next.rootPem);
    assert.equal(told, 1);
  });

  test("refuses a CSR that is none", async () => {
    const request = { csrPem: "garbage", identity: IDENTITY, ttlSeconds: 60 };
    await assert.rejects(authority().sign(request), { code: "CSR_INVALID" });
  });
});

test("lifetime() ends with the CA's own certificate", () => {
  const input = { wantedMs: DAY, defaultMs: DAY, maxMs: DAY, issuerEnd: new Date(NOW + HOUR), now: NOW };
  assert.equal(lifetime(input).notAfter.getTime(), NOW + HOUR);
});

test("lifetime() fails when the CA's own certificate has ended", () => {
  const input = { wantedMs: DAY, defaultMs: DAY, maxMs: DAY, issuerEnd: new Date(NOW), now: NOW };
  assert.throws(() => lifetime(input), { code: "CA_EXPIRED" });
});
