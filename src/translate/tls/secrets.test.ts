import assert from "node:assert/strict";
import { test } from "node:test";
import type { SdsSecretConfig } from "#gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import { DownstreamTlsContextSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import { meshOf, proxyOf } from "../../../test/support/mesh.ts";
import { object, service } from "../../../test/support/objects.ts";
import { translated, unpacked } from "../../../test/support/translated.ts";
import { credentialSecret, fileSecret } from "./secrets.ts";

/** `ads NAME`, or the cluster that serves it and the name. */
function shown({ name, sdsConfig }: SdsSecretConfig): string {
  const source = sdsConfig?.configSourceSpecifier;
  if (source?.case !== "apiConfigSource") return `${source?.case} ${name}`;
  const target = source.value.grpcServices[0]?.targetSpecifier;
  return `${target?.case === "envoyGrpc" ? target.value.clusterName : ""} ${name}`;
}

test("credentialSecret() leads to whoever serves the credential", () => {
  const providers = ["vault outbound|8080||vault.example"];
  const served = (name: string, sockets = {}) => shown(credentialSecret(name, sockets, providers));
  assert.equal(served("cert"), "ads kubernetes://cert");
  assert.equal(served("configmap://ns/roots"), "ads configmap://ns/roots");
  assert.equal(served("builtin://"), "sds-grpc default");
  assert.equal(served("builtin://-cacert"), "sds-grpc ROOTCA");
  assert.equal(served("sds://vault"), "outbound|8080||vault.example sds://vault");
  assert.equal(served("sds://other"), "ads kubernetes://sds://other");
  assert.equal(served("sds://other", { credentialSocket: true }), "sds-external sds://other");
  assert.equal(served("cert", { credentialSocket: true }), "ads kubernetes://cert");
});

test("a provider of credentials counts when its service and port exist", () => {
  const gateway = object("Gateway", "g", {
    selector: { istio: "ingress" },
    servers: [
      {
        port: { number: 443, name: "https", protocol: "HTTPS" },
        tls: { mode: "SIMPLE", credentialName: "sds://vault" },
        hosts: ["*"],
      },
    ],
  });
  const vault = service("prod/vault", { name: "grpc", port: 8080 });
  const router = proxyOf({ type: "router", labels: { istio: "ingress" } });
  const secretOf = (name: string, port: number, more = "") => {
    const extensionProviders = [{ name: "x", sds: { name: "vault", service: name, port } }];
    const snapshot = meshOf(gateway + vault + more, { mesh: { extensionProviders } });
    const { transportSocket } = translated(snapshot, router).listener("0.0.0.0_443").filterChains[0] ?? {};
    const any = transportSocket?.configType.case === "typedConfig" ? transportSocket.configType.value : undefined;
    const [secret] = unpacked(DownstreamTlsContextSchema, any).commonTlsContext?.tlsCertificateSdsSecretConfigs ?? [];
    return secret && shown(secret);
  };
  const host = "vault.prod.svc.cluster.local";
  assert.equal(secretOf(host, 8080), `outbound|8080||${host} sds://vault`);
  assert.equal(secretOf(`prod/${host}`, 8080), `outbound|8080||${host} sds://vault`);
  const unknown = "ads kubernetes://sds://vault";
  assert.equal(secretOf("nowhere.example", 8080), unknown);
  assert.equal(secretOf(host, 9090), unknown);
  assert.equal(secretOf(`other/${host}`, 8080), unknown);
});

test("fileSecret() leads to the agent, or to the program that serves files in its place", () => {
  assert.equal(shown(fileSecret("file-root:/r", {})), "sds-grpc file-root:/r");
  assert.equal(shown(fileSecret("file-root:/r", { fileSocket: true })), "sds-files-grpc file-root:/r");
});

test("a proxy with a socket for credentials has a cluster for it", () => {
  const clusters = (metadata: object) => translated(meshOf(""), proxyOf({ metadata: { ...metadata } })).clusters;
  assert.equal(clusters({}).has("sds-external"), false);
  const endpoints = clusters({ credential: "true" }).get("sds-external")?.loadAssignment?.endpoints;
  const host = endpoints?.[0]?.lbEndpoints[0]?.hostIdentifier;
  const address = host?.case === "endpoint" ? host.value.address?.address : undefined;
  assert.equal(address?.case === "pipe" && address.value.path, "./var/run/secrets/credential-uds/socket");
});
