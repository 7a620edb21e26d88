/** Holes that control planes had, each tried on a whole one, on the port where it was. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { CLUSTER_TYPE } from "#protocol/messages/type-urls.ts";
import { TestControlPlane } from "../../test/support/control-plane.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { TokenIssuer } from "../../test/support/token-issuer.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";

const CREATE_CERTIFICATE = "/istio.v1.auth.IstioCertificateService/CreateCertificate";
const STREAM = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
const MEGABYTE = 1_048_576;
const asIs = (bytes: Buffer) => bytes;

/** Bytes that are no message: random ones, fields without an end, and nesting without a bottom. */
const CRAFTED: readonly Buffer[] = [
  randomBytes(1000),
  Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]),
  Buffer.alloc(100_000, 0x0b),
  Buffer.from("0a".repeat(2_000), "hex"),
];

const OBJECTS = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: open, namespace: bank}
spec: {hosts: [open.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: vault, namespace: bank}
spec: {rules: [{from: [{source: {principals: [cluster.local/ns/bank/sa/teller]}}]}]}
`;

describe("holes of the past", () => {
  const issuer = new TokenIssuer();
  let plane: TestControlPlane;
  let plain: string;
  let secure: string;
  let root: string;
  before(async () => {
    const flags = ["--httpsAddr=127.0.0.1:0"];
    plane = new TestControlPlane({ files: { "a.yaml": OBJECTS }, flags, env: { JWT_RULE: issuer.rule } });
    await plane.ready();
    plain = await plane.address("gRPC discovery service");
    secure = (await plane.address("secure gRPC discovery service")).replace("127.0.0.1", "localhost");
    root = readFileSync(join(plane.folder, "ca/root-cert.pem"), "utf8");
  });
  after(() => plane?.[Symbol.asyncDispose]());

  interface Call {
    readonly path: string;
    readonly bytes: Buffer;
    readonly headers?: Readonly<Record<string, string>>;
    readonly address?: string;
  }

  /** How a call ends. */
  function refusal({ path, bytes, headers = {}, address = secure }: Call): Promise<status> {
    const channel = address === plain ? credentials.createInsecure() : credentials.createSsl(Buffer.from(root));
    const caller = new Client(address, channel, { "grpc.max_send_message_length": -1 });
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    return new Promise<status>((resolve) => {
      const ended = ({ code }: Pick<ServiceError, "code">) => {
        caller.close();
        resolve(code);
      };
      if (path === STREAM) {
        const call = caller.makeBidiStreamRequest(path, asIs, asIs, metadata);
        call.on("error", () => undefined); // the status tells
        call.on("status", ended);
        call.on("data", () => ended({ code: status.OK }));
        call.write(bytes);
      } else {
        const answered = (error: ServiceError | null) => ended({ code: error?.code ?? status.OK });
        caller.makeUnaryRequest(path, asIs, asIs, bytes, metadata, answered);
      }
    });
  }

  async function stillServes(): Promise<void> {
    using proxy = new XdsClient(plain, { node: nodeOf(proxyOf()) });
    proxy.request(CLUSTER_TYPE);
    await proxy.take(CLUSTER_TYPE);
  }

  /** A stream over TLS as a workload of that namespace. */
  async function proven(namespace: string, node?: Uint8Array): Promise<XdsClient> {
    const authorization = await issuer.bearer(namespace);
    return new XdsClient(secure, { root, headers: { authorization }, ...(node && { node }) });
  }

  /** Posts a body to the webhooks; the text of the answer. */
  async function posted(path: string, body: string): Promise<string> {
    const port = Number((await plane.address("webhook service")).split(":").at(-1));
    const headers = { "content-type": "application/json" };
    const servername = "istiod.istio-system.svc";
    return new Promise((resolve, reject) => {
      const asked = request(
        { host: "127.0.0.1", port, path, method: "POST", headers, ca: root, servername },
        (answer) => answer.toArray().then((chunks) => resolve(Buffer.concat(chunks).toString()), reject),
      );
      asked.on("error", reject);
      asked.end(body);
    });
  }

  test("CVE-2022-23635: crafted messages of nobody end the control plane (15012, 15010)", async () => {
    for (const bytes of CRAFTED) {
      for (const path of [CREATE_CERTIFICATE, STREAM]) assert.notEqual(await refusal({ path, bytes }), status.OK);
      assert.notEqual(await refusal({ path: STREAM, bytes, address: plain }), status.OK);
      for (const address of [plain, secure]) await sent(address, bytes);
    }
    await stillServes();
  });

  test("messages without measure end the control plane (15012, 15010)", async () => {
    const bytes = Buffer.alloc(20 * MEGABYTE, 0x0a);
    for (const path of [CREATE_CERTIFICATE, STREAM]) assert.notEqual(await refusal({ path, bytes }), status.OK);
    assert.notEqual(await refusal({ path: STREAM, bytes, address: plain }), status.OK);
    await stillServes();
  });

  test("CVE-2022-24726: a review that nests without end uses up the stack (15017)", async () => {
    const bodies = ["[".repeat(20_000), '{"a":'.repeat(5_000), `${"[".repeat(5_000)}${"]".repeat(5_000)}`];
    for (const body of bodies) {
      for (const path of ["/validate", "/inject"]) assert.doesNotMatch(await posted(path, body), /"allowed":true/);
    }
    await stillServes();
  });

  test("CVE-2022-39278, CVE-2019-14993: regular expressions that are deep, huge or slow (15017)", async () => {
    for (const regex of [
      "(".repeat(20_000),
      `${"(".repeat(2_000)}a${")".repeat(2_000)}`,
      "(a{1000}){1000}",
      "(a*)*b",
    ]) {
      const http = [{ match: [{ uri: { regex } }], route: [{ destination: { host: "a" } }] }];
      const object = {
        apiVersion: "networking.istio.io/v1",
        kind: "VirtualService",
        metadata: { name: "x", namespace: "ns" },
        spec: { hosts: ["a"], http },
      };
      const asked = { uid: "u", operation: "CREATE", object };
      const review = { kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", request: asked };
      // Allowed or not, it is answered.
      assert.match(await posted("/validate", JSON.stringify(review)), /"allowed":(true|false)/);
    }
    await stillServes();
  });

  test("CVE-2022-39388: who calls from the same machine is believed, and what it says of its certificate (15012)", async () => {
    const told = { "x-forwarded-client-cert": "By=spiffe://a;URI=spiffe://cluster.local/ns/istio-system/sa/istiod" };
    for (const headers of [{}, told]) {
      for (const path of [CREATE_CERTIFICATE, STREAM]) {
        assert.equal(await refusal({ path, bytes: Buffer.alloc(0), headers }), status.UNAUTHENTICATED);
      }
    }
    const ofPlain = { path: CREATE_CERTIFICATE, bytes: Buffer.alloc(0), headers: told, address: plain };
    assert.equal(await refusal(ofPlain), status.UNIMPLEMENTED);
  });

  for (const typeUrl of ["istio.io/debug", "istio.io/debug/syncz", "istio.io/debug/config_dump"]) {
    const subscribe = typeUrl === "istio.io/debug" ? ["syncz"] : [];
    test(`CVE-2026-31838, statusgen-xds-auth: ${typeUrl} needs no proof (15010)`, async () => {
      for (const method of ["DeltaAggregatedResources", "StreamAggregatedResources"]) {
        using stranger = new XdsClient(plain, {
          method,
          headers: { authorization: await issuer.bearer("istio-system") },
        });
        stranger.request(typeUrl, { subscribe });
        assert.equal((await stranger.ended()).code, status.UNAUTHENTICATED);
        using proxy = new XdsClient(plain, { method, node: nodeOf(proxyOf({ namespace: "istio-system" })) });
        proxy.request(CLUSTER_TYPE);
        await proxy.take(CLUSTER_TYPE);
        proxy.request(typeUrl, { subscribe });
        assert.equal((await proxy.ended()).code, status.UNAUTHENTICATED);
      }
    });
  }

  test("CVE-2026-31838, statusgen-xds-namespace: debug pages tell of proxies of other namespaces (15012)", async () => {
    const node = nodeOf(proxyOf({ namespace: "bank", name: "teller" }));
    using proxy = await proven("bank", node);
    proxy.request(CLUSTER_TYPE);
    await proxy.take(CLUSTER_TYPE);
    const told = async (namespace: string, typeUrl: string, subscribe: readonly string[]) => {
      using client = await proven(namespace);
      client.request(typeUrl, { subscribe });
      const answer = await client.next(typeUrl).catch(() => undefined);
      if (answer === undefined) return status[(await client.ended()).code] ?? "";
      return answer.resources.map(({ value }) => Buffer.from(value).toString()).join();
    };
    const [syncz, dump] = ["istio.io/debug/syncz", "istio.io/debug/config_dump"];
    assert.equal(await told("shop", "istio.io/debug", ["syncz"]), "PERMISSION_DENIED");
    assert.match(await told("shop", "istio.io/debug", ["config_dump?proxyID=teller.bank"]), /^Proxy not connected/);
    assert.doesNotMatch(await told("shop", syncz, []), /teller/);
    assert.equal(await told("shop", dump, ["teller.bank"]), "");
    assert.match(await told("bank", dump, ["teller.bank"]), /open\.example/);
    assert.match(await told("istio-system", "istio.io/debug", ["syncz"]), /teller\.bank/);
  });

  test("xds-api-generator-auth: configuration is read by who asks for it as `api` (15010, 15012)", async () => {
    const node = nodeOf(proxyOf({ namespace: "bank", metadata: { GENERATOR: "api" } }));
    const types = [
      "networking.istio.io/v1/ServiceEntry",
      "networking.istio.io/v1alpha3/ServiceEntry",
      "security.istio.io/v1beta1/AuthorizationPolicy",
      "type.googleapis.com/istio.security.v1beta1.AuthorizationPolicy",
    ];
    for (const method of ["DeltaAggregatedResources", "StreamAggregatedResources"]) {
      using stranger = new XdsClient(plain, { method, node });
      for (const typeUrl of types) stranger.request(typeUrl, { subscribe: ["bank/vault"] });
      for (const typeUrl of types) assert.deepEqual((await stranger.next(typeUrl)).resources, []);
    }
    using other = await proven("bank", node);
    for (const typeUrl of types) other.request(typeUrl, { subscribe: ["bank/vault"] });
    for (const typeUrl of types) assert.deepEqual((await other.next(typeUrl)).resources, []);
  });
});

/** Sends bytes as they are, and waits until the other side has had enough of them. */
function sent(address: string, bytes: Buffer): Promise<void> {
  const port = Number(address.split(":").at(-1));
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.end(bytes));
    socket.on("error", () => undefined); // being cut off is fine
    socket.on("close", () => resolve());
    socket.resume();
  });
}
