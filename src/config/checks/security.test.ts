import assert from "node:assert/strict";
import { test } from "node:test";
import { parseObject } from "../kinds/parse-object.ts";

function problemsOf(kind: string, spec: object, annotations: object = {}): string[] {
  const metadata = { name: "x", namespace: "ns", annotations };
  const { problems } = parseObject({ apiVersion: "security.istio.io/v1", kind, metadata, spec });
  return problems.map(({ severity, field }) => `${severity} ${field}`);
}

const ofPolicy = (spec: object, annotations?: object) => problemsOf("AuthorizationPolicy", spec, annotations);
const ofRule = (rule: object) => ofPolicy({ rules: [rule] });
const ofSource = (source: object) => ofRule({ from: [{ source }] });
const ofOperation = (operation: object) => ofRule({ to: [{ operation }] });
const ofCondition = (key: string, ...values: string[]) => ofRule({ when: [{ key, values }] });
const ofJwt = (rule: object) => problemsOf("RequestAuthentication", { jwtRules: [{ issuer: "me", ...rule }] });

const SOURCE = "spec.rules[0].from[0].source";
const OPERATION = "spec.rules[0].to[0].operation";

test("an authorization policy with every field is fine", () => {
  const spec = {
    selector: { matchLabels: { app: "a" } },
    rules: [
      {},
      {
        from: [
          { source: { principals: ["*"], notNamespaces: ["b"], ipBlocks: ["10.0.0.0/8", "::1"] } },
          { source: { serviceAccounts: ["a", "ns/b"], notRemoteIpBlocks: ["1.2.3.4"], requestPrincipals: ["i/s"] } },
        ],
        to: [{ operation: { hosts: ["a.com"], ports: ["80"], methods: ["GET"], paths: ["/a/{*}/b/{**}", "/c*"] } }],
        when: [
          { key: "request.headers[X-A]", values: ["a"] },
          { key: "request.auth.claims[a][b]", notValues: ["a"] },
          { key: "experimental.envoy.filters.network.mysql_proxy[a.b]", values: ["[update]"] },
          { key: "source.ip", values: ["10.0.0.0/8"] },
          { key: "destination.port", values: ["0", "65535"] },
        ],
      },
    ],
  };
  assert.deepEqual(ofPolicy(spec), []);
  assert.deepEqual(ofPolicy({}), []);
  assert.deepEqual(ofPolicy({ action: "CUSTOM", provider: { name: "p" }, rules: [{}] }), []);
});

test("what a policy applies to is said in one way", () => {
  const gateway = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "g" };
  const cases: [object, string[]][] = [
    [{ targetRefs: [gateway, { kind: "Service", name: "s" }] }, []],
    [{ targetRef: gateway, selector: { matchLabels: { app: "a" } } }, ["error spec"]],
    [{ targetRefs: [{ ...gateway, namespace: "other" }] }, ["error spec.targetRefs[0].namespace"]],
    [{ targetRefs: [{ ...gateway, name: "" }] }, ["error spec.targetRefs[0].name"]],
    [{ targetRefs: [{ ...gateway, kind: "HTTPRoute" }] }, ["error spec.targetRefs[0]"]],
    [{ targetRefs: [{ ...gateway, group: "__proto__" }] }, ["error spec.targetRefs[0]"]],
    [{ selector: {} }, ["warning spec.selector.matchLabels"]],
    [{ selector: { matchLabels: { app: "*" } } }, ["error spec.selector.matchLabels.app"]],
  ];
  for (const [spec, expected] of cases) assert.deepEqual(ofPolicy(spec), expected, JSON.stringify(spec));
});

test("a list without anything in it is a list that is not there", () => {
  assert.deepEqual(ofRule({ from: [], to: [], when: [] }), []);
  assert.deepEqual(ofPolicy({ rules: [] }), []);
});

test("actions ask for what they need", () => {
  const cases: [object, string[]][] = [
    [{ action: "DENY" }, ["error spec.rules"]],
    [{ action: "DENY", rules: [] }, ["error spec.rules"]],
    [{ action: "CUSTOM", provider: { name: "p" } }, ["error spec.rules"]],
    [{ action: "CUSTOM", rules: [{}] }, ["error spec.provider.name"]],
    [{ action: "DENY", rules: [{}], provider: { name: "p" } }, ["error spec.provider"]],
    [
      {
        action: "CUSTOM",
        provider: { name: "p" },
        rules: [
          { from: [{ source: { notPrincipals: ["a"] } }], when: [{ key: "request.auth.principal", values: ["a"] }] },
        ],
      },
      [`error ${SOURCE}.notPrincipals`, "error spec.rules[0].when[0].key"],
    ],
  ];
  for (const [spec, expected] of cases) assert.deepEqual(ofPolicy(spec), expected, JSON.stringify(spec));
});

test("a rule to deny that looks at HTTP alone is warned about", () => {
  const deny = (rule: object) => ofPolicy({ action: "DENY", rules: [rule] });
  assert.deepEqual(deny({ to: [{ operation: { paths: ["/a"] } }] }), ["warning spec.rules[0]"]);
  assert.deepEqual(deny({ from: [{ source: { requestPrincipals: ["a"] } }] }), ["warning spec.rules[0]"]);
  assert.deepEqual(deny({ to: [{ operation: { paths: ["/a"], ports: ["80"] } }] }), []);
  assert.deepEqual(deny({ to: [{ operation: { paths: ["/a"], ports: [] } }] }), ["warning spec.rules[0]"]);
  assert.deepEqual(deny({ from: [{ source: { notNamespaces: ["a"] } }] }), []);
  assert.deepEqual(deny({ when: [{ key: "request.headers[a]", values: ["b"] }] }), []);
});

test("sources, operations and conditions are checked", () => {
  const long = "a".repeat(321);
  const cases: [string[], string[]][] = [
    [ofRule({ from: [{}] }), [`error ${SOURCE}`]],
    [ofSource({}), [`error ${SOURCE}`]],
    [ofSource({ principals: [] }), [`error ${SOURCE}`]],
    [ofSource({ principals: [""] }), [`error ${SOURCE}.principals[0]`]],
    [
      ofSource({ ipBlocks: ["1.2.3"], notRemoteIpBlocks: ["10.0.0.0/33"] }),
      [`error ${SOURCE}.ipBlocks[0]`, `error ${SOURCE}.notRemoteIpBlocks[0]`],
    ],
    [ofSource({ serviceAccounts: ["a"], namespaces: ["b"] }), [`error ${SOURCE}.serviceAccounts`]],
    [
      ofSource({ serviceAccounts: ["*", "a/b/c", "/a", long] }),
      [0, 1, 2, 3].map((i) => `error ${SOURCE}.serviceAccounts[${i}]`),
    ],
    [ofSource({ serviceAccounts: Array(17).fill("a") }), [`error ${SOURCE}.serviceAccounts`]],
    [ofOperation({}), [`error ${OPERATION}`]],
    [ofOperation({ ports: ["65536", "http", "-1"] }), [0, 1, 2].map((i) => `error ${OPERATION}.ports[${i}]`)],
    [
      ofOperation({ paths: ["/{**}/a/{*}", "/a{*}", "/{a}", "/{*}/a b", "/{*}//", "{*}", `/{*}/${"a".repeat(300)}`] }),
      [0, 1, 2, 3, 4, 5, 6].map((i) => `error ${OPERATION}.paths[${i}]`),
    ],
    [ofCondition("source.ip", "nowhere"), ["error spec.rules[0].when[0].values[0]"]],
    [ofCondition("destination.port", "70000"), ["error spec.rules[0].when[0].values[0]"]],
    [ofCondition("source.namespace"), ["error spec.rules[0].when[0]"]],
    [ofCondition("", "a"), ["error spec.rules[0].when[0].key"]],
    [ofCondition("constructor", "a"), ["error spec.rules[0].when[0].key"]],
    [ofCondition("request.headers", "a"), ["error spec.rules[0].when[0].key"]],
    [ofCondition("request.headers[]", "a"), ["error spec.rules[0].when[0].key"]],
    [ofCondition("destination.labels[app]", "a"), ["error spec.rules[0].when[0].key"]],
  ];
  for (const [[...problems], expected] of cases) assert.deepEqual(problems, expected);
});

test("only policies that allow or deny can be tried out", () => {
  const annotation = 'metadata.annotations["istio.io/dry-run"]';
  const dryRun = (value: string, spec: object = {}) => ofPolicy(spec, { "istio.io/dry-run": value });
  assert.deepEqual(dryRun("true"), []);
  assert.deepEqual(dryRun("yes"), [`error ${annotation}`]);
  assert.deepEqual(dryRun("true", { action: "AUDIT" }), [`error ${annotation}`]);
  assert.deepEqual(problemsOf("PeerAuthentication", {}, { "istio.io/dry-run": "true" }), [`error ${annotation}`]);
});

test("rules for tokens are checked", () => {
  const KEY = {
    kty: "EC",
    crv: "P-256",
    x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
  };
  const at = "error spec.jwtRules[0]";
  const cases: [object, string[]][] = [
    [{ jwks: JSON.stringify({ keys: [KEY, { kty: "oct", k: "AQ" }] }), timeout: "5s" }, []],
    [{ jwks: JSON.stringify(KEY), fromHeaders: [{ name: "A", prefix: "B " }] }, []],
    [{ issuer: "", jwksUri: "https://a.com/keys" }, []],
    [{ issuer: "" }, [`${at}.issuer`]],
    [{ jwksUri: "a.com" }, [`${at}.jwksUri`]],
    [{ jwksUri: "file:///etc/passwd" }, [`${at}.jwksUri`]],
    [{ jwks: "{" }, [`${at}.jwks`]],
    [{ jwks: "7" }, [`${at}.jwks`]],
    [{ jwks: '{"keys": 1}' }, [`${at}.jwks`]],
    [{ jwks: '{"keys": [{"kty": "RSA"}]}' }, [`${at}.jwks.keys[0]`]],
    [
      { audiences: [""], fromParams: [""], fromCookies: [""] },
      [`${at}.audiences[0]`, `${at}.fromParams[0]`, `${at}.fromCookies[0]`],
    ],
    [{ fromHeaders: [{ name: "" }] }, [`${at}.fromHeaders[0].name`]],
    [
      { outputClaimToHeaders: [{ header: "a b", claim: "" }] },
      [`${at}.outputClaimToHeaders[0].claim`, `${at}.outputClaimToHeaders[0].header`],
    ],
    [{ timeout: "0s" }, [`${at}.timeout`]],
  ];
  for (const [rule, expected] of cases) assert.deepEqual(ofJwt(rule), expected, JSON.stringify(rule));
});
