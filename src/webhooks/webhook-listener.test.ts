import assert from "node:assert/strict";
import { Agent, get, request } from "node:https";
import { after, before, describe, test } from "node:test";
import { compileTemplate } from "@mizzen/go-template/template";
import { testInjector } from "#inject/injector/fixture.ts";
import type { ServerIdentity } from "#lib/net/server-identity.ts";
import { selfSigned } from "../../test/support/certificates.ts";
import { WebhookListener } from "./webhook-listener.ts";

const REVIEW = {
  kind: "AdmissionReview",
  apiVersion: "admission.k8s.io/v1",
  request: { uid: "u", namespace: "ns", object: { spec: { containers: [{ name: "a" }] } } },
};

describe("WebhookListener", () => {
  let identity: ServerIdentity;
  let renew: (identity: ServerIdentity) => void = () => {};
  let listener: WebhookListener;
  let port: number;
  let injector = testInjector();
  const times: number[] = [];
  const [logged, counted]: [string[], string[]] = [[], []];
  let isReady = true;

  const made = (): ServerIdentity => {
    const { certificate, key } = selfSigned("istiod.istio-system.svc");
    return { certificates: certificate, key, clientRoots: "" };
  };

  before(async () => {
    identity = made();
    listener = new WebhookListener({
      flag: "--httpsAddr",
      address: { host: "127.0.0.1", port: 0 },
      identity: {
        current: () => identity,
        subscribe: (taker) => {
          renew = taker;
          return () => {};
        },
      },
      injection: () => ({ injector, proxyConfigs: [], nativeSidecars: () => false }),
      count: (name) => void counted.push(name),
      log: (message) => void logged.push(message),
      onInjectionTime: (seconds) => void times.push(seconds),
      now: () => performance.now(),
      readiness: () => (isReady ? { status: 200, body: "ok\n" } : { status: 503, body: "waiting\n" }),
    });
    port = Number((await listener.start()).split(":").at(-1));
  });
  after(() => listener.stop(0));

  function send(
    path: string,
    body: string | Buffer,
    ca = identity.certificates,
  ): Promise<{ status: number; body: string }> {
    return new Promise((resolve, reject) => {
      const headers = { "content-type": "application/json" };
      const options = {
        host: "127.0.0.1",
        port,
        path,
        method: "POST",
        headers,
        ca,
        servername: "istiod.istio-system.svc",
        agent: false,
      };
      const sent = request(options, (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(chunks).toString() }));
      });
      sent.on("error", reject);
      sent.end(body);
    });
  }

  test("answers reviews over TLS and tells how long it took", async () => {
    const { status, body } = await send("/inject?timeout=30s", JSON.stringify(REVIEW));
    assert.equal(status, 200);
    assert.match(body, /"patchType":"JSONPatch"/);
    assert.equal(times.length, 1);
  });

  test("says that it is ready", async () => {
    assert.equal((await send("/httpsReady", "")).status, 200);
  });

  test("answers /ready as the other ports do", async () => {
    assert.deepEqual(await send("/ready", ""), { status: 200, body: "ok\n" });
    isReady = false;
    assert.equal((await send("/ready", "")).status, 503);
    isReady = true;
  });

  test("keeps a quiet connection longer than the API server does, which sends no review twice", async () => {
    const agent = new Agent({ keepAlive: true });
    const options = { host: "127.0.0.1", port, path: "/httpsReady", agent, rejectUnauthorized: false };
    const kept = await new Promise<string>((resolve, reject) => {
      get(options, (answer) => resolve(String(answer.resume().headers["keep-alive"]))).on("error", reject);
    });
    agent.destroy();
    const [, seconds] = /^timeout=(\d+)$/.exec(kept) ?? [];
    assert.ok(Number(seconds) > 90, kept);
  });

  test("refuses bodies above 6 MiB and takes those below", async () => {
    const padded = (bytes: number) => JSON.stringify({ ...REVIEW, padding: "x".repeat(bytes) });
    assert.equal((await send("/inject", padded(10 * 1024 * 1024))).status, 400);
    assert.equal((await send("/inject", padded(5 * 1024 * 1024))).status, 200);
  });

  test("CVE-2022-24726: oversized and deeply nested messages neither stall nor crash it", async () => {
    const quotes = '\\"'.repeat(3 * 1024 * 1024 - 8);
    const bodies = [
      "[".repeat(6_000_000),
      '{"a":'.repeat(1_000_000),
      `"${quotes}`,
      `${"[".repeat(200_000)}${"]".repeat(200_000)}`,
    ];
    for (const path of ["/inject", "/validate"]) {
      for (const body of bodies) {
        const start = process.cpuUsage();
        const { status, body: answer } = await send(path, body);
        const { user, system } = process.cpuUsage(start);
        assert.equal(status, 200);
        assert.match(answer, /"allowed":false.*could not decode body/);
        assert.ok(user + system < 2_000_000, `${path}: ${user + system} us`);
      }
    }
  });

  test("CVE-2022-39278: regular expressions that exhaust other engines neither stall nor crash it", async () => {
    const review = (regex: string) => ({
      kind: "AdmissionReview",
      apiVersion: "admission.k8s.io/v1",
      request: {
        uid: "u",
        operation: "CREATE",
        object: {
          apiVersion: "networking.istio.io/v1",
          kind: "VirtualService",
          metadata: { name: "v" },
          spec: {
            hosts: ["a.com"],
            http: Array.from({ length: 50 }, () => ({
              match: [{ uri: { regex } }],
              route: [{ destination: { host: "a" } }],
            })),
          },
        },
      },
    });
    const regexes = [
      "(".repeat(500) + ")".repeat(500),
      "(".repeat(1000),
      `(${"a".repeat(990)}){1000}`,
      "((a{100}){100}){100}",
      `(?i)${"[B-\u{1E900}]".repeat(200)}`,
    ];
    for (const regex of regexes) {
      const start = process.cpuUsage();
      const { body } = await send("/validate", JSON.stringify(review(regex)));
      const { user, system } = process.cpuUsage(start);
      assert.match(body, /"allowed":(false|true)/);
      assert.ok(user + system < 2_000_000, `${regex.slice(0, 20)}: ${user + system} us`);
    }
  });

  test("shows a renewed certificate to new connections", async () => {
    const before = identity.certificates;
    identity = made();
    renew(identity);
    assert.equal((await send("/httpsReady", "")).status, 200);
    await assert.rejects(send("/httpsReady", "", before));
  });

  test("a bug refuses the request alone", async () => {
    const good = injector;
    const broken = compileTemplate("{{ bug }}", { name: "inject", functions: { bug: () => assert.fail("bug") } });
    injector = { ...good, templates: new Map([["sidecar", broken]]) };
    assert.equal((await send("/inject", JSON.stringify(REVIEW))).status, 500);
    assert.equal(logged.at(-1), "bug in a webhook");
    injector = good;
    assert.equal((await send("/inject", JSON.stringify(REVIEW))).status, 200);
  });
});
