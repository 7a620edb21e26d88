import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { CryptoMbPrivateKeyMethodConfigSchema } from "#gen/envoy/extensions/private_key_providers/cryptomb/v3alpha/cryptomb_pb.ts";
import { QatPrivateKeyMethodConfigSchema } from "#gen/envoy/extensions/private_key_providers/qat/v3alpha/qat_pb.ts";
import { SecretSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import { selfSigned } from "../../../test/support/certificates.ts";
import { meshOf, proxyOf } from "../../../test/support/mesh.ts";
import { unpacked } from "../../../test/support/translated.ts";
import { planSecret, secretsView } from "./plan.ts";

const { certificate, key } = selfSigned("web.example.com");
const quoted = (text: string) => JSON.stringify(text);
const secret = (name: string, content: object, namespace = "default") =>
  `apiVersion: v1\nkind: Secret\nmetadata: {name: ${name}, namespace: ${namespace}}\nstringData: ${JSON.stringify(content)}\n---\n`;
const MESH = meshOf(
  secret("generic", { cert: certificate, key, cacert: "roots", crl: "revoked" }) +
    secret("tls", { "tls.crt": certificate, "tls.key": key, "ca.crt": "tls roots", "tls.ocsp-staple": "staple" }) +
    secret("apart", { cert: certificate, key }) +
    secret("apart-cacert", { cacert: "own roots" }) +
    secret("none", { other: "x" }) +
    secret("half", { cert: certificate }) +
    `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: roots, namespace: other}\ndata: {ca.crt: ${quoted("public roots")}}\n`,
);
const VERIFIED = { namespace: "default", serviceAccount: "a" };
const view = secretsView({ ...proxyOf(), verified: VERIFIED }, MESH.mesh);

/** What is in a secret, by field. */
function contentOf(name: string): Readonly<Record<string, string>> | undefined {
  assert.ok(view);
  const recipe = planSecret(MESH, view, name);
  if (recipe === undefined) return undefined;
  const { type, name: own } = fromBinary(SecretSchema, recipe.build(recipe.input));
  assert.equal(own, name);
  assert.ok(type.case === "tlsCertificate" || type.case === "validationContext");
  return Object.fromEntries(
    Object.entries(type.value).flatMap(([field, source]) =>
      typeof source === "object" && source !== null && "specifier" in source
        ? [[field, Buffer.from(source.specifier.value).toString()]]
        : [],
    ),
  );
}

test("certificates are found under either pair of names, with what belongs to them", () => {
  assert.deepEqual(contentOf("kubernetes://generic"), { certificateChain: certificate, privateKey: key });
  assert.deepEqual(contentOf("kubernetes://tls"), {
    certificateChain: certificate,
    privateKey: key,
    ocspStaple: "staple",
  });
});

test("a key is wrapped for the hardware that the settings of the proxy, or of the mesh, name", () => {
  const qat = { privateKeyProvider: { qat: { pollDelay: "2s" } } };
  const cryptomb = { privateKeyProvider: { cryptomb: { pollDelay: "0.010s", fallback: true } } };
  const { mesh } = meshOf("", { mesh: { defaultConfig: qat } });
  const ofProxy = { ...proxyOf(), verified: VERIFIED };
  const views = [ofProxy, { ...ofProxy, metadata: { ...ofProxy.metadata, PROXY_CONFIG: cryptomb } }].map((proxy) =>
    secretsView(proxy, mesh),
  );
  assert.notEqual(views[0]?.key, views[1]?.key);
  const keys = views.map((each) => {
    const planned = each && planSecret(MESH, each, "kubernetes://tls");
    assert.ok(planned);
    const { type } = fromBinary(SecretSchema, planned.build(planned.input));
    assert.ok(type.case === "tlsCertificate");
    const { privateKey, ocspStaple, privateKeyProvider: provider } = type.value;
    assert.deepEqual([privateKey, ocspStaple], [undefined, undefined]);
    assert.ok(provider?.configType.value);
    const schema =
      provider.providerName === "qat" ? QatPrivateKeyMethodConfigSchema : CryptoMbPrivateKeyMethodConfigSchema;
    const method = unpacked<typeof schema>(schema, provider.configType.value);
    assert.deepEqual(Buffer.from(method.privateKey?.specifier.value ?? "").toString(), key);
    const { seconds, nanos } = method.pollDelay ?? {};
    return [provider.providerName, provider.fallback, Number(seconds), nanos];
  });
  assert.deepEqual(keys, [
    ["qat", false, 2, 0],
    ["cryptomb", true, 0, 10_000_000],
  ]);
});

test("a key stays as it is where no hardware is named, or Envoy cannot hand keys to it", () => {
  const extensions = new Set(["envoy.filters.http.router", "cryptomb"]);
  const isWrapped = (privateKeyProvider: object) => {
    const proxy = {
      ...proxyOf({ metadata: { PROXY_CONFIG: { privateKeyProvider } } }),
      verified: VERIFIED,
      extensions,
    };
    return secretsView(proxy, MESH.mesh)?.keyProvider !== undefined;
  };
  assert.deepEqual([{}, { qat: {} }, { cryptomb: {} }].map(isWrapped), [false, false, true]);
});

test("roots are those of the Secret with the ending, else of the one without", () => {
  assert.deepEqual(contentOf("kubernetes://apart-cacert"), { trustedCa: "own roots" });
  assert.deepEqual(contentOf("kubernetes://generic-cacert"), { trustedCa: "roots", crl: "revoked" });
  assert.deepEqual(contentOf("kubernetes://tls-cacert"), { trustedCa: "tls roots" });
});

test("a proxy of a further cluster has the Secrets there first, then those beside the configuration", () => {
  const there = meshOf(
    secret("generic", { cert: certificate, key, cacert: "roots there" }) + secret("apart", { x: "" }),
  );
  const mesh = { ...MESH, clusterSecrets: [{ clusterId: "c2", secrets: there.secrets }] };
  const rootsFor = (clusterId: string, name: string) => {
    const proxy = proxyOf({ metadata: { CLUSTER_ID: clusterId } });
    const seen = secretsView({ ...proxy, verified: VERIFIED }, mesh.mesh);
    assert.ok(seen);
    const recipe = planSecret(mesh, seen, name);
    return recipe && Buffer.from(recipe.build(recipe.input)).toString();
  };
  assert.match(rootsFor("c2", "kubernetes://generic-cacert") ?? "", /roots there/);
  assert.doesNotMatch(rootsFor("c1", "kubernetes://generic-cacert") ?? "", /roots there/);
  assert.match(rootsFor("c2", "kubernetes://apart") ?? "", /BEGIN CERTIFICATE/);
});

test("roots in a ConfigMap are for everybody", () => {
  assert.deepEqual(contentOf("configmap://other/roots"), { trustedCa: "public roots" });
  assert.deepEqual(contentOf("configmap://other/roots-cacert"), { trustedCa: "public roots" });
});

test("what does not exist, is incomplete or of another namespace is no secret (CVE-2021-34824)", () => {
  for (const name of [
    "",
    "default",
    "kubernetes://",
    "kubernetes://missing",
    "kubernetes://none",
    "kubernetes://half",
    "kubernetes://half-cacert",
    "kubernetes://other/generic",
    "kubernetes:///generic",
    "kubernetes-gateway://default/generic",
    "configmap://roots",
    "configmap://other/__proto__",
    "invalid://",
  ]) {
    assert.equal(contentOf(name), undefined, name);
  }
});

test("a proxy that proved nothing has no view of secrets", () => {
  assert.equal(secretsView(proxyOf(), MESH.mesh), undefined);
});

test("an account without the right has roots only, apart from those who have it, and is asked about when it wants more", () => {
  const asked: string[] = [];
  const rights = {
    mayRead: ({ serviceAccount }: { serviceAccount: string }) => serviceAccount === "rich",
    ask: ({ serviceAccount }: { serviceAccount: string }) => void asked.push(serviceAccount),
  };
  const viewOf = (serviceAccount: string) => {
    const found = secretsView({ ...proxyOf(), verified: { namespace: "default", serviceAccount } }, MESH.mesh, rights);
    assert.ok(found);
    return found;
  };
  const [poor, rich] = [viewOf("poor"), viewOf("rich")];
  assert.notEqual(poor.key, rich.key);
  assert.deepEqual(asked, ["rich"]);
  assert.equal(planSecret(MESH, poor, "kubernetes://tls"), undefined);
  assert.deepEqual(asked, ["rich", "poor"]);
  assert.ok(planSecret(MESH, poor, "kubernetes://tls-cacert"));
  assert.ok(planSecret(MESH, rich, "kubernetes://tls"));
});
