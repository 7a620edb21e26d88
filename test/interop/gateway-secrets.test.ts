/** A gateway of real Envoy whose certificate comes from a Secret, and is exchanged. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { connect } from "node:tls";
import { createLogger } from "#lib/log/log.ts";
import type { Caller } from "#model/ports.ts";
import { SECRET_TYPE } from "#protocol/messages/type-urls.ts";
import { memorySource } from "#sources/memory.ts";
import { AdsServer } from "#xds/ads-server.ts";
import { translatedParts } from "#xds/parts/translated-parts.ts";
import { AdsEnvoy, NO_ENVOY } from "../support/ads-envoy.ts";
import { selfSigned, type TestCertificate } from "../support/certificates.ts";
import { freePort } from "../support/free-ports.ts";
import { serveMethods } from "../support/grpc-server.ts";
import { proxyOf } from "../support/mesh.ts";
import { nodeOf, XdsClient } from "../support/xds-client.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");
const secret = ({ certificate, key }: TestCertificate, namespace = "default") => `
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata: {name: web, namespace: ${namespace}}
data: {tls.crt: ${base64(certificate)}, tls.key: ${base64(key)}}
`;
const gateway = (port: number) => `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: web, namespace: default}
spec:
  selector: {istio: ingress}
  servers:
  - port: {number: ${port}, name: https, protocol: HTTPS}
    tls: {mode: SIMPLE, credentialName: web}
    hosts: ["*"]
`;

const callerOf = (namespace: string): Caller => ({
  identity: `spiffe://cluster.local/ns/${namespace}/sa/default`,
  namespace,
  serviceAccount: "default",
  provedBy: "certificate",
});

/** The control plane on a memory of configuration; callers prove to be of the namespace. */
async function startPlane(caller: Caller | undefined, lines: string[] = []) {
  const source = memorySource();
  const log = createLogger({ write: (line) => void lines.push(line), levels: { all: "debug" } });
  const ads = new AdsServer({ source, initial: source.current(), partsOf: translatedParts, log });
  const stop = new AbortController();
  const running = ads.run(stop.signal);
  const grpc = await serveMethods(ads.service(async () => caller));
  return {
    source,
    address: grpc.address,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running;
      await grpc.stop();
    },
  };
}

/** The certificate that is shown on a port; undefined when nobody shows one. */
function shownOn(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(
      { port, host: "127.0.0.1", servername: "web.example.com", rejectUnauthorized: false },
      () => {
        const shown = socket.getPeerX509Certificate()?.fingerprint256;
        socket.destroy();
        resolve(shown);
      },
    );
    socket.on("error", () => resolve(undefined));
  });
}

const fingerprint = ({ certificate }: TestCertificate) => new X509Certificate(certificate).fingerprint256;

test("a gateway shows the certificate of its Secret, follows its rotation, and keeps it when the next is broken", {
  skip: NO_ENVOY,
}, async () => {
  const [first, second] = [selfSigned("first.example.com"), selfSigned("second.example.com")];
  const lines: string[] = [];
  await using plane = await startPlane(callerOf("default"), lines);
  const port = await freePort();
  plane.source.write({ "gateway.yaml": gateway(port), "secret.yaml": secret(first) });
  const metadata = { NAMESPACE: "default", LABELS: { istio: "ingress" } };
  const id = "router~127.0.0.1~gateway.default~default.svc.cluster.local";
  await using envoy = await AdsEnvoy.start(plane.address, { node: { id, metadata } });
  await envoy.until("the first certificate", async () => (await shownOn(port)) === fingerprint(first));
  plane.source.write({ "secret.yaml": secret(second) });
  await envoy.until("the second certificate", async () => (await shownOn(port)) === fingerprint(second));
  plane.source.write({ "secret.yaml": secret({ certificate: first.certificate, key: second.key }) });
  assert.match(
    plane.source
      .problems()
      .map(({ message }) => message)
      .join(),
    /is not the key of the certificate/,
  );
  assert.equal(await shownOn(port), fingerprint(second));
  const key = second.key.split("\n")[1] ?? "";
  assert.ok(!lines.some((line) => line.includes(key) || line.includes(base64(second.key).slice(0, 60))));
});

for (const [who, caller, namespace, answered] of [
  ["of the same namespace", callerOf("default"), "default", true],
  ["of another namespace", callerOf("other"), "other", false],
  ["that proved nothing", undefined, "default", false],
] as const) {
  test(`a proxy ${who} ${answered ? "gets" : "does not get"} a Secret by name`, async () => {
    await using plane = await startPlane(caller);
    plane.source.write({ "secret.yaml": secret(selfSigned("web.example.com")) });
    using client = new XdsClient(plane.address, { node: nodeOf(proxyOf({ type: "router", namespace })) });
    for (const name of ["kubernetes://web", "kubernetes://default/web"]) {
      client.request(SECRET_TYPE, { subscribe: [name] });
      const { resources } = await client.take(SECRET_TYPE);
      assert.deepEqual(
        resources.map((resource) => resource.name),
        answered ? [name] : [],
      );
    }
  });
}

test("a Secret that a proxy asks for before it exists is sent when it does", async () => {
  await using plane = await startPlane(callerOf("default"));
  plane.source.write({});
  using client = new XdsClient(plane.address, { node: nodeOf(proxyOf({ type: "router", namespace: "default" })) });
  client.request(SECRET_TYPE, { subscribe: ["kubernetes://web"] });
  assert.deepEqual((await client.take(SECRET_TYPE)).removed, ["kubernetes://web"]);
  plane.source.write({ "secret.yaml": secret(selfSigned("web.example.com")) });
  const { resources } = await client.take(SECRET_TYPE);
  assert.deepEqual(
    resources.map(({ name }) => name),
    ["kubernetes://web"],
  );
});
