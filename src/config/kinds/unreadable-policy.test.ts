import assert from "node:assert/strict";
import { test } from "node:test";
import { parseObject } from "./parse-object.ts";
import { ANY_NAMESPACE, unreadablePolicy, unreadableText } from "./unreadable-policy.ts";

const VALID = {
  apiVersion: "security.istio.io/v1",
  kind: "AuthorizationPolicy",
  metadata: { name: "p", namespace: "foo", labels: { "istio.io/rev": "canary", other: "x" } },
  spec: { selector: { matchLabels: { app: "web" } }, action: "DENY", rules: [{}] },
};

function standIn(raw: object) {
  return unreadablePolicy(raw, "because");
}

test("keeps kind, name, namespace, revision and a readable selector", () => {
  assert.deepEqual(standIn(VALID), {
    kind: "AuthorizationPolicy",
    metadata: { name: "p", namespace: "foo", labels: { "istio.io/rev": "canary" }, annotations: {}, createdAt: 0 },
    spec: { selector: { matchLabels: { app: "web" } }, action: "DENY", rules: [{}], unreadable: "because" },
    origin: undefined,
  });
});

test("concerns the whole namespace when nobody can tell what is selected", () => {
  const broken = [
    { selector: 5 },
    { selector: { matchLabels: { app: 5 } } },
    { selector: { matchLabel: { app: "web" } } },
    { selector: { matchLabels: { app: "*" } } },
    { selector: { matchLabels: { app: "web" } }, targetRefs: [{ kind: "Gateway", name: "g" }] },
    { target_refs: [{ kind: "Gateway" }] },
    { targetRef: { group: "nowhere", kind: "Gateway", name: "g" } },
  ];
  for (const spec of broken) {
    const { selector, targetRef, targetRefs, selectsUnknown } = standIn({ ...VALID, spec })?.spec ?? {};
    const found = { selector, targetRef, targetRefs, selectsUnknown };
    const everybody = { selector: undefined, targetRef: undefined, targetRefs: undefined, selectsUnknown: true };
    assert.deepEqual(found, everybody, JSON.stringify(spec));
  }
  assert.equal(standIn({ ...VALID, spec: { selectors: {} } })?.spec.selectsUnknown, undefined);
  assert.equal(standIn({ ...VALID, spec: "text" })?.spec.selectsUnknown, true);
});

test("concerns all namespaces when nobody can tell which is meant", () => {
  const namespaceOf = (metadata: unknown) => standIn({ ...VALID, metadata })?.metadata.namespace;
  assert.equal(namespaceOf({ name: "p" }), "default");
  assert.equal(namespaceOf({ name: "p", namespace: null }), "default");
  assert.equal(namespaceOf(undefined), "default");
  assert.equal(namespaceOf({ name: "p", namespace: 5 }), ANY_NAMESPACE);
  assert.equal(namespaceOf({ name: "p", namespace: ["foo"] }), ANY_NAMESPACE);
  assert.equal(namespaceOf("foo"), ANY_NAMESPACE);
  const anywhere = { ...VALID, metadata: "foo" };
  assert.deepEqual(standIn(anywhere)?.spec.selector, { matchLabels: { app: "web" } });
  const targetRef = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "g" };
  assert.equal(standIn({ ...anywhere, spec: { targetRef } })?.spec.selectsUnknown, true);
  assert.equal(standIn({ ...anywhere, kind: "PeerAuthentication" })?.spec.selectsUnknown, true);
});

test("a policy that could not have denied anything has no stand-in", () => {
  const annotated = (value: unknown) => ({ ...VALID.metadata, annotations: { "istio.io/dry-run": value } });
  assert.equal(standIn({ ...VALID, spec: { action: "AUDIT", rules: 5 } }), undefined);
  assert.equal(standIn({ ...VALID, metadata: annotated("true"), spec: { action: "DENY", rules: 5 } }), undefined);
  assert.ok(standIn({ ...VALID, metadata: annotated("yes"), spec: { action: "DENY", rules: [{}] } }));
  assert.ok(standIn({ ...VALID, metadata: annotated(true), spec: { action: "DENY", rules: [{}] } }));
  assert.ok(standIn({ ...VALID, metadata: annotated("true"), spec: { action: "DENIED", rules: [{}] } }));
  assert.ok(standIn({ ...VALID, spec: { action: "CUSTOM" } }));
  assert.ok(standIn({ ...VALID, kind: "PeerAuthentication", spec: { action: "AUDIT" } }));
});

test("objects of a security kind are recognized by what is left of kind and version", () => {
  const kindOf = (apiVersion: unknown, kind: unknown) => standIn({ ...VALID, apiVersion, kind })?.kind;
  assert.equal(kindOf("security.istio.io/v2", "PeerAuthentication"), "PeerAuthentication");
  assert.equal(kindOf("security.istio.io/v1", "peerauthentication"), "PeerAuthentication");
  assert.equal(kindOf("securty.istio.io/v1", "RequestAuthentication"), "RequestAuthentication");
  assert.equal(kindOf("security.ist]io.io/v1", "RequestAuthentication"), "RequestAuthentication");
  assert.equal(kindOf("v1", "AuthorizationPolicy"), "AuthorizationPolicy");
  assert.equal(kindOf(5, "AuthorizationPolicy"), "AuthorizationPolicy");
  assert.equal(kindOf(undefined, "AuthorizationPolicy"), "AuthorizationPolicy");
  assert.equal(kindOf("security.istio.io", "AuthorisationPolicy"), "AuthorizationPolicy");
  assert.equal(kindOf("security.istio.io/v1", undefined), "AuthorizationPolicy");
  assert.equal(kindOf("policy.linkerd.io/v1alpha1", "AuthorizationPolicy"), undefined);
  assert.equal(kindOf("networking.istio.io/v1", "Gateway"), undefined);
  assert.equal(unreadablePolicy([VALID], "because"), undefined);
});

test("a text that is not YAML counts by the kinds and namespaces that it mentions", () => {
  const namespaces = (text: string) => unreadableText(text, "because").map(({ metadata }) => metadata.namespace);
  const head = "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\n";
  assert.deepEqual(namespaces("kind: Service\nmetadata: {name: [\n"), []);
  assert.deepEqual(namespaces(`${head}metadata: {name: [\n`), ["default"]);
  assert.deepEqual(namespaces(`${head}metadata:\n  namespace: foo\n  name: [\n`), ["foo"]);
  assert.deepEqual(namespaces('{"kind": "PeerAuthentication", "metadata": {"namespace": "foo", '), ["foo"]);
  assert.deepEqual(namespaces(`${head}metadata:\n  namespace foo\n`), [ANY_NAMESPACE]);
  assert.deepEqual(namespaces(`${head}metadata:\n  namespace: "foo bar\n`), [ANY_NAMESPACE]);
  assert.deepEqual(namespaces("kind AuthorizationPolicy\nmetadata: {namespace: foo}\n"), ["foo"]);
});

test("an unknown field is an error in a security object, and a warning elsewhere", () => {
  const severityOf = (raw: object) => parseObject(raw).problems.map(({ severity, field }) => `${severity} ${field}`);
  const rule = { to: [{ operation: { methods: ["GET"], path: ["/public"] } }] };
  assert.deepEqual(severityOf({ ...VALID, spec: { rules: [rule] } }), ["error spec.rules[0].to[0].operation.path"]);
  assert.deepEqual(severityOf({ ...VALID, kind: "PeerAuthentication", spec: { mtsl: { mode: "STRICT" } } }), [
    "error spec.mtsl",
  ]);
  const sidecar = { ...VALID, apiVersion: "networking.istio.io/v1", kind: "Sidecar" };
  const spec = { egress: [{ hosts: ["./*"] }], egres: [] };
  assert.deepEqual(severityOf({ ...sidecar, spec }), ["warning spec.egres"]);
});
