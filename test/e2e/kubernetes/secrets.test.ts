/** Keys for gateways from Secrets of a real API server, for accounts that may read them. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { SECRET_TYPE } from "#protocol/messages/type-urls.ts";
import { selfSigned } from "../../support/certificates.ts";
import { TestControlPlane } from "../../support/control-plane.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";
import { SECRET_READER } from "../../support/kubernetes/secret-reader.ts";
import { proxyOf } from "../../support/mesh.ts";
import { nodeOf, XdsClient } from "../../support/xds-client.ts";

const OBJECTS = `
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
${SECRET_READER}---
apiVersion: v1
kind: ServiceAccount
metadata: {name: gateway, namespace: shop}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: other, namespace: shop}
`;
const [first, second] = [selfSigned("first.example.com"), selfSigned("second.example.com")];
const base64 = (text: string) => Buffer.from(text).toString("base64");
const secret = (name: string, fields: Readonly<Record<string, string>>, type = "Opaque") =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Secret",
    type,
    metadata: { name, namespace: "shop" },
    data: Object.fromEntries(Object.entries(fields).map(([key, text]) => [key, base64(text)])),
  });
const tls = ({ certificate, key } = first) =>
  secret("web", { "tls.crt": certificate, "tls.key": key, "ca.crt": certificate }, "kubernetes.io/tls");

describe("secrets for gateways", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  let server: ApiServer;
  let plane: TestControlPlane;
  let root: string;
  before(async () => {
    server = await startApiServer({ controllers: true });
    await server.apply(OBJECTS);
    await server.apply(tls());
    await server.apply(secret("generic", { cert: first.certificate, key: first.key }));
    await server.apply(secret("generic-cacert", { cacert: second.certificate }));
    plane = new TestControlPlane({ cluster: await server.api() });
    await plane.ready();
    const map = ["-n", "shop", "get", "configmap", "istio-ca-root-cert", "-o", "jsonpath={.data['root-cert\\.pem']}"];
    await eventually("the root", async () => (await server.kubectl(map).catch(() => "")) !== "");
    root = await server.kubectl(map);
  });
  after(async () => {
    await plane?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  async function connect(serviceAccount: string, namespace = "shop"): Promise<XdsClient> {
    const token = await server.kubectl(["-n", namespace, "create", "token", serviceAccount, "--audience=istio-ca"]);
    return new XdsClient(await plane.address("secure gRPC discovery service"), {
      root,
      headers: { authorization: `Bearer ${token.trim()}` },
      node: nodeOf(proxyOf({ type: "router", namespace, serviceAccount })),
    });
  }

  /** What it has in the end: the first answer may come before the API server's. */
  async function untilHas(client: XdsClient, name: string): Promise<string> {
    for (;;) {
      const { resources } = await client.take(SECRET_TYPE);
      const found = resources.find((resource) => resource.name === name);
      if (found !== undefined) return Buffer.from(found.value).toString();
    }
  }

  test("an account with the right has keys, of both kinds of Secrets, and new ones at once", async () => {
    using client = await connect("gateway");
    const line = first.certificate.split("\n")[1] ?? "";
    for (const name of ["kubernetes://web", "kubernetes://shop/generic"]) {
      client.request(SECRET_TYPE, { subscribe: [name] });
      assert.ok((await untilHas(client, name)).includes(line));
    }
    await server.apply(tls(second));
    assert.ok((await untilHas(client, "kubernetes://web")).includes(second.certificate.split("\n")[1] ?? ""));
  });

  test("an account without the right has roots only, and the log says why", async () => {
    using client = await connect("other");
    for (const name of ["kubernetes://web-cacert", "kubernetes://generic-cacert"]) {
      client.request(SECRET_TYPE, { subscribe: [name] });
      await untilHas(client, name);
    }
    client.request(SECRET_TYPE, { subscribe: ["kubernetes://web"] });
    const { resources, removed } = await client.take(SECRET_TYPE);
    assert.deepEqual(resources, []);
    assert.deepEqual(removed, ["kubernetes://web"]);
    await plane.logged(/an account may not read the secrets.*system:serviceaccount:shop:other/);
  });

  test("nobody has Secrets of another namespace", async () => {
    using client = await connect("default", "default");
    client.request(SECRET_TYPE, { subscribe: ["kubernetes://shop/web", "kubernetes://shop/web-cacert"] });
    assert.deepEqual((await client.take(SECRET_TYPE)).resources, []);
  });
});
