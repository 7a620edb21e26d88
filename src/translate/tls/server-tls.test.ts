import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerTls } from "#config/kinds/gateway/schema.ts";
import { DEFAULT_MESH_CONFIG, type MeshConfig } from "#config/mesh/mesh-config.ts";
import { DownstreamTlsContextSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import { unpacked } from "../../../test/support/translated.ts";
import { serverTls } from "./server-tls.ts";

function contextOf(tls: ServerTls, mesh: Partial<MeshConfig> = {}, isTcp = false) {
  const { configType } = serverTls({
    tls,
    isTcp,
    traits: {},
    secrets: { certificate: "", roots: "" },
    mesh: { ...DEFAULT_MESH_CONFIG, ...mesh },
  });
  return unpacked(DownstreamTlsContextSchema, configType.case === "typedConfig" ? configType.value : undefined);
}
const certificates = (tls: ServerTls) =>
  contextOf(tls).commonTlsContext?.tlsCertificateSdsSecretConfigs.map(({ name }) => name);
function rootsOf(tls: ServerTls) {
  const validation = contextOf(tls).commonTlsContext?.validationContextType;
  return validation?.case === "combinedValidationContext"
    ? validation.value.validationContextSdsSecretConfig?.name
    : undefined;
}
const FILES = { serverCertificate: "/cert.pem", privateKey: "/key.pem" };

test("certificates come from files, credentials or the workload itself", () => {
  assert.deepEqual(certificates({ mode: "SIMPLE", ...FILES }), ["file-cert:/cert.pem~/key.pem"]);
  assert.deepEqual(certificates({ mode: "SIMPLE", credentialName: "a" }), ["kubernetes://a"]);
  assert.deepEqual(certificates({ mode: "SIMPLE", credentialNames: ["a", "b"] }), ["kubernetes://a", "kubernetes://b"]);
  assert.deepEqual(certificates({ mode: "ISTIO_MUTUAL" }), ["default"]);
  assert.deepEqual(certificates({ mode: "SIMPLE" }), ["default"]);
});

test("a client has to show a certificate in the mutual modes, and may in the optional one", () => {
  const required = (mode: ServerTls["mode"]) => contextOf({ mode, credentialName: "a" }).requireClientCertificate;
  assert.equal(required("SIMPLE")?.valueOf(), false);
  assert.equal(required("MUTUAL")?.valueOf(), true);
  assert.equal(required("ISTIO_MUTUAL")?.valueOf(), true);
  assert.equal(required("OPTIONAL_MUTUAL")?.valueOf(), false);
  assert.equal(rootsOf({ mode: "OPTIONAL_MUTUAL", credentialName: "a" }), "kubernetes://a-cacert");
  assert.equal(rootsOf({ mode: "MUTUAL", ...FILES, caCertificates: "/ca.pem" }), "file-root:/ca.pem");
  assert.equal(rootsOf({ mode: "ISTIO_MUTUAL" }), "ROOTCA");
  assert.equal(rootsOf({ mode: "SIMPLE", credentialName: "a" }), undefined);
});

test("a pin that is none fits no certificate", () => {
  const tls: ServerTls = {
    mode: "MUTUAL",
    credentialName: "a",
    verifyCertificateSpki: ["x"],
    verifyCertificateHash: ["y"],
  };
  const validation = contextOf(tls).commonTlsContext?.validationContextType;
  assert.equal(validation?.case, "combinedValidationContext");
  const pins = validation?.case === "combinedValidationContext" ? validation.value.defaultValidationContext : undefined;
  assert.deepEqual(pins?.verifyCertificateSpki, [`${"A".repeat(43)}=`]);
  assert.deepEqual(pins?.verifyCertificateHash, ["0".repeat(64)]);
});

test("the server's versions and ciphers come before those of the mesh, unknown ones are left out", () => {
  const mesh: Partial<MeshConfig> = { tlsDefaults: { minProtocolVersion: "TLSV1_3", cipherSuites: ["AES128-SHA"] } };
  const params = (tls: ServerTls) => contextOf(tls, mesh).commonTlsContext?.tlsParams;
  assert.equal(params({ mode: "SIMPLE" })?.tlsMinimumProtocolVersion, 4);
  assert.equal(params({ mode: "SIMPLE", minProtocolVersion: "TLSV1_2" })?.tlsMinimumProtocolVersion, 3);
  assert.deepEqual(params({ mode: "SIMPLE" })?.cipherSuites, ["AES128-SHA"]);
  assert.deepEqual(params({ mode: "SIMPLE", cipherSuites: ["NONE", "AES256-SHA", "AES256-SHA"] })?.cipherSuites, [
    "AES256-SHA",
  ]);
  assert.equal(contextOf({ mode: "SIMPLE" }).commonTlsContext?.tlsParams, undefined);
});

test("curves of the mesh that Envoy does not know, or that are there twice, are left out", () => {
  const curvesOf = (ecdhCurves: string[]) =>
    contextOf({ mode: "SIMPLE" }, { tlsDefaults: { ecdhCurves } }).commonTlsContext?.tlsParams?.ecdhCurves;
  assert.deepEqual(curvesOf(["P-256", "X25519", "P-999", "P-256"]), ["P-256", "X25519"]);
  assert.equal(curvesOf(["P-999"]), undefined);
});
