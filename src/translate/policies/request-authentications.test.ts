import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type MeshOptions, meshOf } from "../../../test/support/mesh.ts";
import { object, service } from "../../../test/support/objects.ts";
import { jwtInput, requestAuthenticationsOf, wantedKeySets } from "./request-authentications.ts";

const KEYS = '{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}';
const WEB = { namespace: "default", labels: { app: "web" } };

function tokens(where: string, jwtRules: readonly object[], spec: object = {}): string {
  return object("RequestAuthentication", where, { jwtRules, ...spec });
}

function inputFor(yaml: string, options: MeshOptions = {}) {
  const mesh = meshOf(yaml, options);
  return jwtInput(mesh, requestAuthenticationsOf(mesh, WEB));
}

describe("requestAuthenticationsOf()", () => {
  test("takes policies of the workload's namespace and of the root that select it", () => {
    const yaml =
      tokens("istio-system/of-all", [{ issuer: "1" }]) +
      tokens("prod/of-prod", [{ issuer: "2" }]) +
      tokens("of-default", [{ issuer: "3" }]) +
      tokens("of-web", [{ issuer: "4" }], { selector: { matchLabels: { app: "web" } } }) +
      tokens("of-api", [{ issuer: "5" }], { selector: { matchLabels: { app: "api" } } }) +
      tokens("of-gateway", [{ issuer: "6" }], {
        targetRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "g" }],
      });
    const names = (labels: Readonly<Record<string, string>>, gatewaySelectors = true) =>
      requestAuthenticationsOf(meshOf(yaml, { features: { gatewaySelectors } }), { namespace: "default", labels }).map(
        ({ metadata }) => metadata.name,
      );
    assert.deepEqual(names({ app: "web" }), ["of-default", "of-web", "of-all"]);
    assert.deepEqual(names({ "gateway.networking.k8s.io/gateway-name": "g" }), ["of-default", "of-gateway", "of-all"]);
    assert.deepEqual(names({ "gateway.networking.k8s.io/gateway-name": "g" }, false), ["of-gateway"]);
    assert.deepEqual(names({ app: "web" }, false), ["of-default", "of-web", "of-all"]);
  });
});

describe("jwtInput()", () => {
  test("puts rules in order of their issuers", () => {
    const { jwtRules } = inputFor(tokens("a", [{ issuer: "b" }, { issuer: "c" }]) + tokens("b", [{ issuer: "a" }]));
    assert.deepEqual(
      jwtRules.map(({ issuer }) => issuer),
      ["a", "b", "c"],
    );
  });

  test("keys that are not there yet are a key that nobody has", () => {
    const { jwtKeys } = inputFor(tokens("a", [{ issuer: "a", jwks: KEYS }, { issuer: "b" }]));
    assert.equal(jwtKeys[0], KEYS);
    const [key] = JSON.parse(jwtKeys[1] ?? "").keys;
    assert.deepEqual(Object.keys(key).sort(), ["e", "kty", "n"]);
  });

  test("a set without keys is a key that nobody has, since Envoy would refuse it and go on as before", () => {
    const empty = '{ "keys" : [ ] }';
    const yaml = tokens("a", [
      { issuer: "a", jwks: empty },
      { issuer: "b", jwksUri: "https://b/keys" },
    ]);
    const mesh = meshOf(yaml);
    const keySets = new Map([["https://b/keys", empty]]);
    const { jwtKeys } = jwtInput({ ...mesh, keySets }, requestAuthenticationsOf(mesh, WEB));
    assert.deepEqual(
      jwtKeys.map((text) => JSON.parse(text).keys.length),
      [1, 1],
    );
  });

  test("a set that has keys is used, whatever else stands in it", () => {
    const jwks = '{"keys":[{"kty":"oct","k":"c2VjcmV0"}],"former":{"keys":[]}}';
    const mesh = meshOf(tokens("a", [{ issuer: "a", jwks }]));
    assert.deepEqual(jwtInput(mesh, requestAuthenticationsOf(mesh, WEB)).jwtKeys, [jwks]);
  });

  test("keys that were fetched are used, and none of another address", () => {
    const mesh = meshOf(tokens("a", [{ issuer: "https://a/" }, { issuer: "https://b", jwksUri: "https://c/keys" }]));
    const found = "https://a/.well-known/openid-configuration";
    const keySets = new Map([
      [found, "of a"],
      ["https://c/keys", "of c"],
      ["https://b/.well-known/openid-configuration", "of b"],
    ]);
    const input = jwtInput({ ...mesh, keySets }, requestAuthenticationsOf(mesh, WEB));
    assert.deepEqual(input.jwtKeys, ["of a", "of c"]);
  });

  const servers = service("keys", { port: 8080, name: "http" });
  const rules = [
    { issuer: "a", jwksUri: "http://keys.default.svc.cluster.local:8080/keys" },
    { issuer: "b", jwksUri: "http://keys.default:8080/keys" },
    { issuer: "c", jwksUri: "https://example.com/keys" },
    { issuer: "d", jwks: KEYS },
  ];
  const ofMesh = "outbound|8080||keys.default.svc.cluster.local";
  for (const { keyFetching, clusters, wanted } of [
    { keyFetching: "control-plane", clusters: ["", "", "", ""], wanted: [0, 1, 2] },
    { keyFetching: "hybrid", clusters: [ofMesh, ofMesh, "", ""], wanted: [2] },
    { keyFetching: "envoy", clusters: [ofMesh, ofMesh, "outbound|443||example.com", ""], wanted: [] },
  ] as const) {
    test(`Envoy fetches keys itself as far as ${keyFetching} says`, () => {
      const mesh = meshOf(servers + tokens("a", rules), { features: { keyFetching } });
      assert.deepEqual(jwtInput(mesh, requestAuthenticationsOf(mesh, WEB)).jwtClusters, clusters);
      assert.deepEqual(
        wantedKeySets(mesh).map(({ id }) => id),
        wanted.map((at) => rules[at]?.jwksUri),
      );
    });
  }
});

test("wantedKeySets() names each address once, with the time to wait there", () => {
  const uri = "https://a/keys";
  const mesh = meshOf(
    tokens("a", [{ issuer: "https://a/", timeout: "2s" }, { jwksUri: uri }]) +
      tokens("b", [{ issuer: "x", jwksUri: uri }]),
  );
  assert.deepEqual(wantedKeySets(mesh), [
    { id: "https://a/.well-known/openid-configuration", discovers: true, timeoutMs: 2_000 },
    { id: uri, discovers: false, timeoutMs: 5_000 },
  ]);
});
