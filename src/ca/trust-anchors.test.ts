import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { before, describe, test } from "node:test";
import { certificateRequest } from "#lib/pki/csr.ts";
import { Authority } from "./authority.ts";
import { selfSignedCa } from "./self-signed.ts";
import { signingBundle } from "./signing-bundle.ts";
import { trustAnchors } from "./trust-anchors.ts";

const DAY = 86_400_000;

describe("trust anchors of the mesh config", () => {
  let own: Awaited<ReturnType<typeof selfSignedCa>>;
  let foreign: string;
  let leaf: string;
  const options = { defaultTtlMs: DAY, maxTtlMs: DAY, now: Date.now };
  const request = () => ({
    csrPem: certificateRequest({
      identity: "spiffe://a/ns/b/sa/c",
      ...generateKeyPairSync("ec", { namedCurve: "prime256v1" }),
    }),
    identity: "spiffe://a/ns/b/sa/c",
    ttlSeconds: 0,
  });
  before(async () => {
    const make = () => selfSignedCa({ trustDomain: "a", lifetimeMs: DAY, keyKind: "P-256", now: Date.now() });
    own = await make();
    foreign = (await make()).rootPem;
    [leaf = ""] = await new Authority(signingBundle(own, Date.now()), options).sign(request());
  });

  test("are told to workloads with their certificate, as they are at that time, each once", async () => {
    let anchors: readonly string[] = [];
    const further = { ...options, furtherRoots: () => anchors };
    const authority = new Authority(signingBundle(own, Date.now()), further);
    assert.equal((await authority.sign(request())).at(-1), own.rootPem);
    anchors = [foreign, own.rootPem];
    assert.equal((await authority.sign(request())).at(-1), own.rootPem + foreign);
    assert.equal(authority.trustBundle(), own.rootPem + foreign);
  });

  test("may be several in one entry and repeated in others", () => {
    const { anchors, problems } = trustAnchors([{ pem: own.rootPem + foreign }, { pem: foreign }]);
    assert.deepEqual([anchors, problems], [[own.rootPem, foreign], []]);
  });

  test("that are wrong are left out and named", () => {
    const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    const entries = [{ pem: "" }, { pem: broken }, { pem: leaf }, { spiffeBundleUrl: "https://x" }, { pem: foreign }];
    const { anchors, problems } = trustAnchors(entries);
    assert.deepEqual(anchors, [foreign]);
    assert.deepEqual(
      problems.map((problem) => problem.slice(0, problem.indexOf(":"))),
      ["caCertificates[0]", "caCertificates[1]", "caCertificates[2]", "caCertificates[3]"],
    );
  });
});
