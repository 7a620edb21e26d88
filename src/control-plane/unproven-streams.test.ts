/** What a stream gets that proves no identity, beside one of the same namespace that does. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  LISTENER_TYPE,
  NAME_TABLE_TYPE,
  ROUTE_TYPE,
  SECRET_TYPE,
} from "#protocol/messages/type-urls.ts";
import { TestControlPlane } from "../../test/support/control-plane.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { TokenIssuer } from "../../test/support/token-issuer.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";

const object = (kind: string, api: string, name: string, spec: string) =>
  `apiVersion: ${api}/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: bank}\nspec: ${spec}\n---\n`;
const networking = (kind: string, name: string, spec: string) =>
  object(kind, kind === "EnvoyFilter" ? "networking.istio.io/v1alpha3" : "networking.istio.io", name, spec);
const entry = (name: string, exportTo: string) =>
  networking(
    "ServiceEntry",
    name,
    `{hosts: [${name}.bank.example], exportTo: ["${exportTo}"], resolution: STATIC, location: MESH_INTERNAL,
  ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.9.9.9}]}`,
  );

/** Everything named `secret` is of the namespace alone. */
const BANK = [
  entry("open", "*"),
  entry("secret-service", "."),
  entry("secret-for-shop", "shop"),
  networking(
    "VirtualService",
    "secret-route",
    "{hosts: [open.bank.example], exportTo: [.], http: [{route: [{destination: {host: secret-target.example}}]}]}",
  ),
  networking(
    "DestinationRule",
    "secret-rule",
    "{host: open.bank.example, exportTo: [.], subsets: [{name: secret-subset, labels: {a: b}}]}",
  ),
  networking(
    "EnvoyFilter",
    "secret-filter",
    "{configPatches: [{applyTo: CLUSTER, match: {context: SIDECAR_OUTBOUND}, patch: {operation: MERGE, value: {alt_stat_name: secret-stat}}}]}",
  ).replace("v1alpha3/v1", "v1alpha3"),
  object(
    "AuthorizationPolicy",
    "security.istio.io",
    "secret-policy",
    "{action: DENY, rules: [{to: [{operation: {paths: [/secret-path]}}]}]}",
  ),
  object(
    "RequestAuthentication",
    "security.istio.io",
    "secret-tokens",
    "{jwtRules: [{issuer: secret-issuer, jwks: '{\"keys\":[]}'}]}",
  ),
].join("");
const ALL = [CLUSTER_TYPE, LISTENER_TYPE];
const NODE = nodeOf(proxyOf({ namespace: "bank", name: "teller", ip: "10.9.9.9" }));

describe("a stream that proves no identity", () => {
  const issuer = new TokenIssuer();
  let plane: TestControlPlane;
  let plain: string;
  let secure: string;
  before(async () => {
    plane = new TestControlPlane({ files: { "bank.yaml": BANK }, env: { JWT_RULE: issuer.rule } });
    await plane.ready();
    plain = await plane.address("gRPC discovery service");
    secure = await plane.address("secure gRPC discovery service");
  });
  after(() => plane?.[Symbol.asyncDispose]());

  async function proven(namespace: string): Promise<XdsClient> {
    const root = readFileSync(join(plane.folder, "ca/root-cert.pem"), "utf8");
    return new XdsClient(secure, { root, node: NODE, headers: { authorization: await issuer.bearer(namespace) } });
  }

  test("gets public services of the namespace it claims, and nothing of what is private there", async () => {
    using insider = await proven("bank");
    using stranger = new XdsClient(plain, { node: NODE });
    const [known, told] = [await everything(insider), await everything(stranger)];
    for (const marker of [
      "secret-service",
      "secret-target",
      "secret-stat",
      "secret-path",
      "secret-policy",
      "secret-issuer",
    ]) {
      assert.ok(known.includes(marker), `${marker} is not in what a proxy of the namespace gets`);
    }
    assert.ok(told.includes("open.bank.example"));
    assert.deepEqual(told.match(/secret[\w-]*/g), null);
    assert.ok(told.includes("proxy-without-proven-identity"), "what a policy could deny is not denied");
  });

  test("keeps getting only that when something changes, whoever is connected beside it", async () => {
    using insider = await proven("bank");
    using stranger = new XdsClient(plain, { node: NODE });
    for (const client of [insider, stranger]) await everything(client);
    plane.write("more.yaml", entry("open-too", "*") + entry("secret-too", "."));
    const names = async (client: XdsClient) =>
      (await client.take(CLUSTER_TYPE)).resources.map(({ name }) => name).join();
    assert.match(await names(insider), /secret-too/);
    assert.equal(await names(stranger), "outbound|80||open-too.bank.example,inbound|80||");
  });

  test("gets no secret and no endpoints of a private service", async () => {
    using stranger = new XdsClient(plain, { node: NODE });
    const cluster = "outbound|80||secret-service.bank.example";
    stranger.request(ENDPOINT_TYPE, { subscribe: [cluster] });
    assert.deepEqual((await stranger.take(ENDPOINT_TYPE)).removed, [cluster]);
    stranger.request(SECRET_TYPE, { subscribe: ["kubernetes://bank/secret"] });
    assert.deepEqual((await stranger.take(SECRET_TYPE)).resources, []);
  });
});

test("claims are believed where the operator asks for no proof", async () => {
  for (const variable of ["XDS_AUTH", "PILOT_ENABLE_XDS_IDENTITY_CHECK"]) {
    await using plane = new TestControlPlane({ files: { "bank.yaml": BANK }, env: { [variable]: "false" } });
    await plane.ready();
    using client = new XdsClient(await plane.address("gRPC discovery service"), { node: NODE });
    assert.match(await everything(client), /secret-policy/);
  }
});

/** Text of all that a proxy gets. */
async function everything(client: XdsClient): Promise<string> {
  const texts: string[] = [];
  const take = async (typeUrl: string, subscribe: readonly string[] = []) => {
    client.request(typeUrl, { subscribe });
    const { resources } = await client.take(typeUrl);
    texts.push(...resources.map(({ name, value }) => `${name}\n${Buffer.from(value).toString("latin1")}`));
  };
  for (const typeUrl of ALL) await take(typeUrl);
  await take(ROUTE_TYPE, ["80", "open.bank.example:80"]);
  await take(NAME_TABLE_TYPE);
  return texts.join("\n");
}
