import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { before, describe, test } from "node:test";
import { certificateRequest } from "#lib/pki/csr.ts";
import { Authority } from "../authority/authority.ts";
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
    const listeners = new Set<() => void>();
    const subscribe = (listener: () => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    };
    const further = { ...options, furtherRoots: { current: () => anchors, subscribe } };
    const authority = new Authority(signingBundle(own, Date.now()), further);
    let told = 0;
    const stop = authority.onTrustChanged(() => told++);
    assert.equal((await authority.sign(request())).at(-1), own.rootPem);
    anchors = [foreign, own.rootPem];
    for (let times = 0; times < 2; times++) for (const listener of listeners) listener();
    assert.equal(told, 1, "told once");
    authority.replace(authority.bundle);
    assert.equal(told, 1, "what did not change is not told");
    stop();
    assert.equal(listeners.size, 0);
    assert.equal((await authority.sign(request())).at(-1), own.rootPem + foreign);
    assert.equal(authority.trustBundle(), own.rootPem + foreign);
  });

  test("may be several in one entry and repeated in others", () => {
    const { anchors, problems } = trustAnchors([{ pem: own.rootPem + foreign }, { pem: foreign }], () => undefined);
    assert.deepEqual([anchors, problems], [[own.rootPem, foreign], []]);
  });

  test("come from SPIFFE bundles too, once these are there", () => {
    const entries = [{ spiffeBundleUrl: "there" }, { spiffeBundleUrl: "not-yet" }];
    const { anchors, problems } = trustAnchors(entries, (url) => (url === "there" ? [foreign] : undefined));
    assert.deepEqual([anchors, problems], [[foreign], []]);
  });

  test("that are wrong are left out and named", () => {
    const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    const entries = [{ pem: "" }, { pem: broken }, { pem: leaf }, { pem: foreign }];
    const { anchors, problems } = trustAnchors(entries, () => undefined);
    assert.deepEqual(anchors, [foreign]);
    assert.deepEqual(
      problems.map((problem) => problem.slice(0, problem.indexOf(":"))),
      ["caCertificates[0]", "caCertificates[1]", "caCertificates[2]"],
    );
  });
});
