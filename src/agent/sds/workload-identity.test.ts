import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff } from "#lib/async/backoff.ts";
import { createLogger } from "#lib/log/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import type { Issuer } from "#lib/pki/issue.ts";
import { eventually, signedChain, testRoot } from "../../../test/support/fake-control-plane.ts";
import { agentMetrics } from "../metrics.ts";

import type { Sign } from "./sign.ts";
import { type CertificateChange, WorkloadIdentity, type WorkloadIdentityOptions } from "./workload-identity.ts";

const IDENTITY = "spiffe://cluster.local/ns/default/sa/httpbin";

function identityOf(sign: Sign, more: Partial<WorkloadIdentityOptions> = {}) {
  const lines: string[] = [];
  const metrics = agentMetrics();
  const identity = new WorkloadIdentity({
    identity: IDENTITY,
    key: { curve: "P-256", rsaBits: 2048, pkcs8: false },
    ttlSeconds: 86_400,
    rotation: { gracePeriodRatio: 0.5, gracePeriodRatioJitter: 0 },
    sign,
    log: createLogger({ write: (line) => lines.push(line) }),
    metrics,
    backoff: new Backoff({ initialMs: 1, maxMs: 2 }),
    shortestMs: 0,
    ...more,
  });
  const changes: CertificateChange[] = [];
  identity.subscribe((change) => changes.push(change));
  const stop = new AbortController();
  return { identity, changes, lines, metrics, stop };
}

const signer =
  (root: () => Issuer): Sign =>
  ({ csr }) =>
    signedChain(csr, root(), IDENTITY).then((chain) => ({ chain }));

test("WorkloadIdentity gets a certificate, keeps it, and ends with the signal", async () => {
  const root = await testRoot();
  let asked: { ttlSeconds: number } | undefined;
  const { identity, changes, metrics, stop } = identityOf((request) => {
    asked = request;
    return signedChain(request.csr, root, IDENTITY).then((chain) => ({ chain }));
  });
  assert.equal(identity.current, undefined);
  const running = identity.run(stop.signal);
  await eventually("a certificate", () => identity.current !== undefined);
  assert.equal(asked?.ttlSeconds, 86_400);
  assert.deepEqual(
    changes.map(({ rootsChanged }) => rootsChanged),
    [true],
  );
  const seconds = metrics.certificateExpiry();
  assert.ok(seconds !== undefined && seconds > 3_000 && seconds < 3_700);
  stop.abort();
  await running;
});

test("WorkloadIdentity tells at debug whom it asks for, and when it does so again", async () => {
  const root = await testRoot();
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line), levels: { default: "debug" } });
  const { identity, stop } = identityOf(
    signer(() => root),
    { log },
  );
  const running = identity.run(stop.signal);
  await eventually("a certificate", () => identity.current !== undefined);
  stop.abort();
  await running;
  assert.match(lines.join(""), new RegExp(`\\tdebug\\tasking for a certificate\\tidentity=${IDENTITY} ttl=24h0m0s\\n`));
  assert.match(lines.join(""), /\tdebug\tscheduled certificate for rotation\tin=(?:29m5|30m)\S*\n/);
});

test("WorkloadIdentity waits a random time below the initial backoff before its first request", async () => {
  const root = await testRoot();
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line), levels: { default: "debug" } });
  let asked = 0;
  const sign: Sign = async ({ csr }) => {
    asked++;
    return { chain: await signedChain(csr, root, IDENTITY) };
  };
  const late = identityOf(sign, { log, initialBackoffMs: 7_200_000, random: () => 0.5 });
  const waiting = late.identity.run(late.stop.signal);
  assert.match(lines.join(""), /\tdebug\tinitial backoff\twait=1h0m0s\n/);
  const early = identityOf(sign, { initialBackoffMs: 7_200_000, random: () => 0 });
  const running = early.identity.run(early.stop.signal);
  await eventually("a certificate", () => early.identity.current !== undefined);
  assert.equal(asked, 1, "the other one still waits");
  for (const { stop } of [late, early]) stop.abort();
  await Promise.all([waiting, running]);
});

test("WorkloadIdentity counts the time that the CA takes, not that for the key", async (t) => {
  const root = await testRoot();
  let clock = 0;
  t.mock.method(performance, "now", () => clock);
  const { identity, metrics, stop } = identityOf(async ({ csr }) => {
    clock += 7;
    return { chain: await signedChain(csr, root, IDENTITY) };
  });
  // The key is there when the request is counted.
  t.mock.method(metrics.signRequests, "add", () => {
    clock += 500;
  });
  const running = identity.run(stop.signal);
  await eventually("a certificate", () => identity.current !== undefined);
  stop.abort();
  await running;
  assert.match(metrics.text(), /^istio_agent_outgoing_latency\{request_type="csr"\} 7$/m);
});

test("WorkloadIdentity asks again after a failure, with one line per attempt", async () => {
  const root = await testRoot();
  let attempts = 0;
  const { identity, lines, metrics, stop } = identityOf((request) => {
    if (++attempts < 3) throw new MeshError("CA_FAILED", "Cannot get a certificate from ca:1: it cannot be reached");
    return signedChain(request.csr, root, IDENTITY).then((chain) => ({ chain }));
  });
  const running = identity.run(stop.signal);
  await eventually("a certificate", () => identity.current !== undefined);
  stop.abort();
  await running;
  const warnings = lines.filter((line) => line.includes("\twarn\t"));
  assert.equal(warnings.length, 2);
  assert.match(warnings[0] ?? "", /Cannot get a certificate from ca:1: it cannot be reached; next attempt in /);
  assert.match(metrics.text(), /istio_agent_num_outgoing_requests{request_type="csr"} 3\n/);
  assert.match(metrics.text(), /istio_agent_num_failed_outgoing_requests{request_type="csr"} 2\n/);
});

test("WorkloadIdentity replaces the certificate before it expires, and says when the roots changed", async () => {
  const roots = [await testRoot("one"), await testRoot("one"), await testRoot("two")];
  const [first, , last] = roots;
  if (first === undefined || last === undefined) throw new Error("no roots");
  let signed = 0;
  const { identity, changes, stop } = identityOf(
    signer(() => (signed++ < 2 ? first : last)),
    // All of the lifetime is grace period: replaced at once.
    { rotation: { gracePeriodRatio: 1, gracePeriodRatioJitter: 0 } },
  );
  const running = identity.run(stop.signal);
  await eventually("three certificates", () => changes.length >= 3);
  stop.abort();
  await running;
  assert.deepEqual(
    changes.slice(0, 3).map(({ rootsChanged }) => rootsChanged),
    [true, false, true],
  );
  assert.equal(new Set(changes.map(({ certificate }) => certificate.privateKey)).size, changes.length);
});

test("WorkloadIdentity keeps the certificate at hand while the CA fails", async () => {
  const root = await testRoot();
  let signed = 0;
  const { identity, lines, stop } = identityOf(
    (request) => {
      if (signed++ > 0) throw new MeshError("CA_FAILED", "down");
      return signedChain(request.csr, root, IDENTITY).then((chain) => ({ chain }));
    },
    { rotation: { gracePeriodRatio: 1, gracePeriodRatioJitter: 0 } },
  );
  const running = identity.run(stop.signal);
  await eventually("a failed attempt", () => lines.some((line) => line.includes("down")));
  assert.notEqual(identity.current, undefined);
  stop.abort();
  await running;
});

test("WorkloadIdentity ends at once when stopped before the CA answered", async () => {
  const { identity, stop } = identityOf(() => Promise.reject(new Error("never")), {
    backoff: new Backoff({ initialMs: 60_000, maxMs: 60_000 }),
  });
  const running = identity.run(stop.signal);
  setImmediate(() => stop.abort());
  await running;
  assert.equal(identity.current, undefined);
});

test("WorkloadIdentity refuses a certificate for another identity, and asks again", async () => {
  const root = await testRoot();
  let signed = 0;
  const { identity, lines, changes, stop } = identityOf(({ csr }) => {
    const name = signed++ < 2 ? "spiffe://cluster.local/ns/default/sa/mallory" : IDENTITY;
    return signedChain(csr, root, name).then((chain) => ({ chain }));
  });
  const running = identity.run(stop.signal);
  await eventually("a certificate", () => identity.current !== undefined);
  stop.abort();
  await running;
  assert.equal(changes.length, 1);
  assert.equal(lines.filter((line) => line.includes("sa/mallory instead of spiffe://")).length, 2);
});

test("WorkloadIdentity asks without a further pause when somebody waits for the first certificate", {
  timeout: 30_000,
}, async () => {
  const root = await testRoot();
  let failures = 1;
  const { identity, changes, lines, stop } = identityOf(
    (request, signal) => {
      if (failures-- > 0) throw new MeshError("CA_FAILED", "not there yet");
      return signer(() => root)(request, signal);
    },
    { backoff: new Backoff({ initialMs: 600_000, maxMs: 600_000 }) },
  );
  const running = identity.run(stop.signal);
  await eventually("a failure", () => lines.some((line) => line.includes("not there yet")));
  identity.hurry();
  await eventually("a certificate", () => changes.length === 1);
  stop.abort();
  await running;
});

test("WorkloadIdentity lets a CA that failed rest, however many wait", { timeout: 30_000 }, async () => {
  let asked = 0;
  const { identity, lines, stop } = identityOf(
    () => {
      asked++;
      throw new MeshError("CA_FAILED", "not there yet");
    },
    { backoff: new Backoff({ initialMs: 600_000, maxMs: 600_000 }), shortestMs: 600_000 },
  );
  const running = identity.run(stop.signal);
  await eventually("a failure", () => lines.some((line) => line.includes("not there yet")));
  for (let count = 0; count < 10; count++) identity.hurry();
  await new Promise((resolve) => setImmediate(resolve));
  stop.abort();
  await running;
  assert.equal(asked, 1);
});

test("WorkloadIdentity renews at once when it is told to", async () => {
  const root = await testRoot();
  const { identity, changes, stop } = identityOf(signer(() => root));
  const running = identity.run(stop.signal);
  await eventually("a certificate", () => changes.length === 1);
  identity.renew();
  await eventually("another", () => changes.length === 2);
  stop.abort();
  await running;
  assert.equal(changes.length, 2);
});

test("WorkloadIdentity replaces the certificate in time although the clock was set back", {
  timeout: 30_000,
}, async () => {
  const root = await testRoot();
  let behindMs = 0;
  const { identity, changes, stop } = identityOf(
    signer(() => root),
    { rotation: { gracePeriodRatio: 1, gracePeriodRatioJitter: 0 }, shortestMs: 50, now: () => Date.now() - behindMs },
  );
  // By then it waits.
  const setBack = () => setImmediate(() => (behindMs = 3_600_000));
  identity.subscribe(setBack);
  const running = identity.run(stop.signal);
  await eventually("another certificate", () => changes.length > 1);
  stop.abort();
  await running;
});

test("WorkloadIdentity does not flood a CA whose certificates are always old", async () => {
  const root = await testRoot();
  const { identity, changes, stop } = identityOf(
    signer(() => root),
    { rotation: { gracePeriodRatio: 1, gracePeriodRatioJitter: 0 }, shortestMs: 60_000 },
  );
  const running = identity.run(stop.signal);
  await eventually("a certificate", () => changes.length === 1);
  await new Promise((resolve) => setTimeout(resolve, 20));
  stop.abort();
  await running;
  assert.equal(changes.length, 1);
});
