import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { beforeEach, describe, type TestContext, test } from "node:test";
import { SILENT } from "#lib/log/log.ts";
import type { ServerIdentity } from "#lib/net/server-identity.ts";
import { Authority } from "../authority/authority.ts";
import { selfSignedCa } from "../keys/self-signed.ts";
import { signingBundle } from "../keys/signing-bundle.ts";
import { ServingCertificate } from "./serving-certificate.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const START = Math.floor(Date.now() / 1000) * 1000;

describe("ServingCertificate", () => {
  let now: number;
  let authority: Authority;

  beforeEach(async () => {
    now = START;
    authority = new Authority(await bundle(), { defaultTtlMs: DAY, maxTtlMs: 10 * DAY, now: () => now });
  });

  async function bundle() {
    return signingBundle(
      await selfSignedCa({ trustDomain: "cluster.local", lifetimeMs: 100 * DAY, keyKind: "P-256", now: START }),
      START,
    );
  }

  function issue(): Promise<ServingCertificate> {
    return ServingCertificate.issue({
      authority,
      names: ["istiod.istio-system.svc", "127.0.0.1"],
      log: SILENT,
      now: () => now,
    });
  }

  /** Runs the certificate until the test ends and answers with its next identity. */
  function nextOf(serving: ServingCertificate, t: TestContext): Promise<ServerIdentity> {
    const stopping = new AbortController();
    const running = serving.run(stopping.signal);
    t.after(() => {
      stopping.abort();
      return running;
    });
    return new Promise((resolve) => serving.subscribe(resolve));
  }

  test("carries the names of the control plane and the CA's longest lifetime", async () => {
    const { certificates, clientRoots } = (await issue()).current();
    const certificate = new X509Certificate(certificates);
    assert.equal(certificate.subjectAltName, "DNS:istiod.istio-system.svc, IP Address:127.0.0.1");
    assert.equal(certificate.validToDate.getTime(), START + 10 * DAY);
    assert.equal(clientRoots, authority.trustBundle());
  });

  test("is renewed after half its life", async (t) => {
    const serving = await issue();
    now = START + 5 * DAY;
    const next = await nextOf(serving, t);
    assert.equal(new X509Certificate(next.certificates).validToDate.getTime(), now + 10 * DAY);
    assert.equal(serving.current(), next);
  });

  test("is renewed when the CA's files are replaced", async (t) => {
    const serving = await issue();
    const next = nextOf(serving, t);
    authority.replace(await bundle());
    assert.equal((await next).clientRoots, authority.trustBundle());
  });

  test("follows each of two replacements at once", async (t) => {
    const serving = await issue();
    const first = nextOf(serving, t);
    authority.replace(await bundle());
    await first;
    const second = new Promise<ServerIdentity>((resolve) => serving.subscribe(resolve));
    authority.replace(await bundle());
    assert.equal((await second).clientRoots, authority.trustBundle());
  });

  test("stops at once when it is told to", async () => {
    const stopping = new AbortController();
    const running = (await issue()).run(stopping.signal);
    stopping.abort();
    await running;
  });
});
