/** Security objects with a mistake, written into the configuration of running proxies: what they could have denied is denied. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { WHERE_ENVOY } from "../../support/agent-process.ts";
import { brokenTexts } from "../../support/broken-objects.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { ProxyPair } from "./proxy-pair.ts";

const SEED = Number(process.env.BROKEN_SEED ?? 1);
const COUNT = Number(process.env.BROKEN_COUNT ?? 12);
const OPTIONS = { ...WHERE_ENVOY, timeout: 300_000 };

const METADATA = { name: "broken", namespace: "default" };
const SELECTOR = { matchLabels: { app: "server" } };
const ISSUER = { issuer: "https://issuer.example", jwks: '{"keys": []}', fromHeaders: [{ name: "x-token" }] };

/** Valid objects, and whether they deny a request to `/admin` that comes in plain text or over mutual TLS. */
const OBJECTS = {
  "DENY policy": {
    kind: "AuthorizationPolicy",
    spec: {
      selector: SELECTOR,
      action: "DENY",
      rules: [
        {
          from: [{ source: { notIpBlocks: ["10.0.0.0/8"] } }],
          to: [{ operation: { paths: ["/admin"], methods: ["GET"], notPorts: ["1"] } }],
        },
      ],
    },
    denies: "everything",
  },
  "ALLOW policy": {
    kind: "AuthorizationPolicy",
    spec: {
      selector: SELECTOR,
      action: "ALLOW",
      rules: [
        { when: [{ key: "request.headers[x-a]", values: ["1"] }], to: [{ operation: { hosts: ["a.example"] } }] },
      ],
    },
    denies: "everything",
  },
  "CUSTOM policy": {
    kind: "AuthorizationPolicy",
    spec: { selector: SELECTOR, action: "CUSTOM", provider: { name: "nobody" }, rules: [{}] },
    denies: "everything",
  },
  "request authentication": {
    kind: "RequestAuthentication",
    spec: { selector: SELECTOR, jwtRules: [ISSUER] },
    denies: "everything",
  },
  "peer authentication": {
    kind: "PeerAuthentication",
    spec: { selector: SELECTOR, mtls: { mode: "STRICT" }, portLevelMtls: { 1: { mode: "PERMISSIVE" } } },
    denies: "plain text",
  },
} as const;

describe("a broken object denies what it could have denied", OPTIONS, () => {
  let pair: ProxyPair;
  before(async () => {
    pair = await ProxyPair.start({ controlPlane: {}, agents: {}, accepts: "PERMISSIVE" });
  });
  after(() => pair[Symbol.asyncDispose]());

  const statuses = async () => [await pair.callPlain("/admin"), await pair.call("/admin")].join();
  const becomes = (expected: string, why: () => string) =>
    eventually(why, async () => (await statuses()) === expected, 30_000);

  for (const [name, { kind, spec, denies }] of Object.entries(OBJECTS)) {
    test(`a ${name} with a mistake at a random place`, OPTIONS, async () => {
      const valid = { apiVersion: "security.istio.io/v1", kind, metadata: METADATA, spec };
      const texts = brokenTexts(JSON.parse(JSON.stringify(valid)), { count: COUNT, seed: SEED });
      assert.equal(texts.length, COUNT);
      for (const [i, text] of texts.entries()) {
        await becomes("200,200", () => `everything passes before ${text}`);
        pair.write(`broken-${i}.yaml`, text);
        // Where nobody can tell that an object is about plain text alone, it denies more.
        const holds = async () => (await statuses()).startsWith(denies === "everything" ? "403,403" : "403,");
        await eventually(() => `a denial by ${text}; seed ${SEED}`, holds, 30_000);
        pair.write(`broken-${i}.yaml`, undefined);
      }
      await becomes("200,200", () => "everything passes at the end");
    });
  }

  test("the access log and the control plane's log name the object", OPTIONS, async () => {
    for (const [kind, spec] of Object.entries({
      AuthorizationPolicy: "{action: DENIED}",
      RequestAuthentication: "{jwtRules: 5}",
      PeerAuthentication: "{mtls: {mode: STRICKT}}",
    })) {
      const name = kind.toLowerCase();
      const head = `apiVersion: security.istio.io/v1\nmetadata: {name: ${name}, namespace: default}`;
      pair.write("named.yaml", `${head}\nkind: ${kind}\nspec: ${spec}\n`);
      await eventually(`${kind} denies plain text`, async () => (await pair.callPlain("/admin")) === 403);
      const details = `rbac_access_denied_matched_policy[ns[default]-policy[${name}]-unreadable]`;
      // Envoy writes it now and then.
      await eventually(`${details} in the access log`, () => pair.accessLog().includes(details));
      assert.ok(pair.output.includes(`${kind}/default/${name}: cannot be read and has no earlier version`));
      pair.write("named.yaml", undefined);
      await becomes("200,200", () => "everything passes when the object is deleted");
    }
  });

  test("an object that was valid keeps denying what it denied, and nothing else", OPTIONS, async () => {
    const policy = (port: string) =>
      JSON.stringify({
        apiVersion: "security.istio.io/v1",
        kind: "AuthorizationPolicy",
        metadata: METADATA,
        spec: { action: "DENY", rules: [{ to: [{ operation: { paths: ["/admin"], notPorts: [port] } }] }] },
      });
    pair.write("kept.yaml", policy("1"));
    await becomes("403,403", () => "the valid policy denies");
    const since = pair.output.length;
    pair.write("kept.yaml", policy("http"));
    await eventually("the mistake is reported", () => pair.output.slice(since).includes('not "http"'));
    assert.equal(await statuses(), "403,403");
    assert.equal(await pair.call("/other"), 200);
    pair.write("kept.yaml", undefined);
    await becomes("200,200", () => "everything passes when the object is deleted");
  });
});
