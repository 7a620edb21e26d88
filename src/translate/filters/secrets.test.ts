import assert from "node:assert/strict";
import { test } from "node:test";
import type { SdsSecretConfig } from "#gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import { meshOf, proxyOf } from "../../../test/support/mesh.ts";
import { translated } from "../../../test/support/translated.ts";
import { credentialSecret, fileSecret } from "./secrets.ts";

/** `ads NAME`, or the cluster that serves it and the name. */
function shown({ name, sdsConfig }: SdsSecretConfig): string {
  const source = sdsConfig?.configSourceSpecifier;
  if (source?.case !== "apiConfigSource") return `${source?.case} ${name}`;
  const target = source.value.grpcServices[0]?.targetSpecifier;
  return `${target?.case === "envoyGrpc" ? target.value.clusterName : ""} ${name}`;
}

test("credentialSecret() leads to whoever serves the credential", () => {
  const sds = { name: "vault", service: "prod/vault.example", port: 8080 };
  const mesh = { extensionProviders: [{ name: "x", sds }] };
  const served = (name: string, sockets = {}) => shown(credentialSecret(name, sockets, mesh));
  assert.equal(served("cert"), "ads kubernetes://cert");
  assert.equal(served("configmap://ns/roots"), "ads configmap://ns/roots");
  assert.equal(served("builtin://"), "sds-grpc default");
  assert.equal(served("builtin://-cacert"), "sds-grpc ROOTCA");
  assert.equal(served("sds://vault"), "outbound|8080||vault.example sds://vault");
  assert.equal(served("sds://other"), "ads kubernetes://sds://other");
  assert.equal(served("sds://other", { credentialSocket: true }), "sds-external sds://other");
  assert.equal(served("cert", { credentialSocket: true }), "ads kubernetes://cert");
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
