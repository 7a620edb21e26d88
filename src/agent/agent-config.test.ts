import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAgentConfig } from "./agent-config.ts";

test("parseAgentConfig() has Istio's defaults", () => {
  const { config, problems } = parseAgentConfig({});
  assert.deepEqual(problems, []);
  assert.deepEqual(config.dns, {
    capture: false,
    atGateway: false,
    address: "localhost:15053",
    forwardParallel: false,
    forwardCache: true,
  });
  assert.deepEqual(config.identity.key, { curve: undefined, rsaBits: 2048, pkcs8: false });
  assert.deepEqual(config.identity.rotation, { gracePeriodRatio: 0.5, gracePeriodRatioJitter: 0.01 });
  assert.deepEqual(
    [config.identity.ttlSeconds, config.identity.trustDomain, config.envoy.statusPort, config.envoy.prometheusPort],
    [86_400, "cluster.local", 15021, 15090],
  );
  assert.equal(config.envoy.skipDeprecatedLogs, true);
  assert.equal(config.grpcBootstrapPath, "etc/istio/proxy/grpc-bootstrap.json");
  assert.equal(config.identity.google.metadataHost, "169.254.169.254");
});

test("parseAgentConfig() reads values by their type, and headers by their prefix", () => {
  const { config } = parseAgentConfig({
    SECRET_TTL: "1h",
    ECC_SIGNATURE_ALGORITHM: "ECDSA",
    ECC_CURVE: "P384",
    ISTIO_META_DNS_CAPTURE: "true",
    EXIT_ON_ZERO_ACTIVE_CONNECTIONS: "1",
    PEER_METADATA_DISCOVERY: "false",
    TERMINATION_DRAIN_DURATION_SECONDS: "7",
    XDS_HEADER_FOO: "a=b",
    CA_HEADER_BAR: "",
    POD_NAME: "",
  });
  assert.equal(config.identity.ttlSeconds, 3_600);
  assert.equal(config.identity.key.curve, "P-384");
  assert.equal(config.dns.capture, true);
  assert.equal(config.envoy.exitOnZeroActiveConnections, true);
  assert.equal(config.envoy.metadataDiscovery, false);
  assert.equal(config.terminationDrainSeconds, 7);
  assert.deepEqual(config.xdsHeaders, { FOO: "a=b" });
  assert.deepEqual(config.identity.caHeaders, { BAR: "" });
});

test("parseAgentConfig() rejects values of the wrong type also of variables that Istio no longer has", () => {
  const { warnings, config } = parseAgentConfig({
    STALED_CONNECTION_RECYCLE_RUN_INTERVAL: "soon",
    SECRET_ROTATION_CHECK_INTERVAL: "5",
    INITIAL_BACKOFF_MSEC: "1.5s",
  });
  assert.deepEqual(warnings.toSorted(), [
    'INITIAL_BACKOFF_MSEC: must be a whole number up to 2147483647, not "1.5s": 0 is used',
    'SECRET_ROTATION_CHECK_INTERVAL: must be a duration such as "5s", not "5": 5m0s is used',
    'STALED_CONNECTION_RECYCLE_RUN_INTERVAL: must be a duration such as "5s", not "soon": 5m0s is used',
  ]);
  assert.equal(config.identity.initialBackoffMs, 0);
  const right = parseAgentConfig({ STALED_CONNECTION_RECYCLE_RUN_INTERVAL: "10m", INITIAL_BACKOFF_MSEC: "2000" });
  assert.deepEqual([right.warnings, right.config.identity.initialBackoffMs], [[], 2_000]);
});

test("parseAgentConfig() refuses headers that no call can have, without what is in them", () => {
  const { problems } = parseAgentConfig({
    XDS_HEADER_ok: "a b~",
    "XDS_HEADER_any-Bin": "ü\n",
    "XDS_HEADER_x-tenant.1": "",
    XDS_HEADER_lines: "secret\nx",
    "CA_HEADER_a b": "x",
    CA_HEADER_: "x",
    CA_HEADER_umlaut: "ü",
    ISTIO_META_CLUSTER_ID: "a\n",
  });
  assert.deepEqual(problems, [
    "XDS_HEADER_lines: must be printable ASCII",
    "CA_HEADER_a b: must end with the name of a header",
    "CA_HEADER_: must end with the name of a header",
    "CA_HEADER_umlaut: must be printable ASCII",
    "ISTIO_META_CLUSTER_ID: must be printable ASCII",
  ]);
});

test("parseAgentConfig() tells every wrong value; where a default can hold it does, as in Istio's agent", () => {
  const { config, problems, warnings } = parseAgentConfig({
    SECRET_TTL: "soon",
    ENVOY_STATUS_PORT: "65536",
    ENVOY_PROMETHEUS_PORT: "15_090",
    COMPLIANCE_POLICY: "strict",
    SECRET_GRACE_PERIOD_RATIO: "2",
    ISTIO_CPU_LIMIT: "-1",
    PKCS8_KEY: "maybe",
    ECC_CURVE: "P128",
    CLOUD_PLATFORM: "moon",
    PEER_METADATA_DISCOVERY: "x",
    TERMINATION_DRAIN_DURATION_SECONDS: "9223372037",
  });
  assert.deepEqual(problems.toSorted(), [
    'COMPLIANCE_POLICY: must be one of fips-140-2, pqc, not "strict"',
    'ENVOY_STATUS_PORT: must be a port from 0 to 65535, not "65536"',
  ]);
  assert.deepEqual(warnings.toSorted(), [
    'CLOUD_PLATFORM: must be one of gcp, aws, azure, none, not "moon": it is ignored',
    'ECC_CURVE: must be one of P256, P384, not "P128": P256 is used',
    'ENVOY_PROMETHEUS_PORT: must be a port from 0 to 65535, not "15_090": 15090 is used',
    'ISTIO_CPU_LIMIT: must be a whole number up to 2147483647, not "-1": 0 is used',
    'PEER_METADATA_DISCOVERY: must be true or false, not "x": it is ignored',
    'PKCS8_KEY: must be true or false, not "maybe": false is used',
    'SECRET_GRACE_PERIOD_RATIO: must be a number from 0 to 1, not "2": 0.5 is used',
    'SECRET_TTL: must be a duration above 0 such as "24h", not "soon": 24h0m0s is used',
    'TERMINATION_DRAIN_DURATION_SECONDS: must be a whole number up to 9223372036, not "9223372037": it is ignored',
  ]);
  assert.deepEqual([config.identity.ttlSeconds, config.cpuLimit, config.identity.key.pkcs8], [86_400, 0, false]);
});

test("parseAgentConfig() reads the name of a cloud in any letters, and numbers as Go does", () => {
  const env = { CLOUD_PLATFORM: "AWS", ENVOY_STATUS_PORT: "+15031", ISTIO_CPU_LIMIT: "+5" };
  const { config, problems, warnings } = parseAgentConfig(env);
  assert.deepEqual([config.platform.cloud, config.envoy.statusPort, config.cpuLimit], ["aws", 15031, 5]);
  assert.deepEqual([problems, warnings], [[], []]);
});

test("parseAgentConfig() takes a port of 0, with which Envoy listens on any that is free", () => {
  const { config, problems } = parseAgentConfig({ ENVOY_STATUS_PORT: "0", ENVOY_PROMETHEUS_PORT: "0" });
  assert.deepEqual([config.envoy.statusPort, config.envoy.prometheusPort, problems], [0, 0, []]);
});

test("parseAgentConfig() takes an empty text for a value, and any other empty variable for unset", () => {
  const { config, problems, warnings } = parseAgentConfig({ GRPC_XDS_BOOTSTRAP: "", SECRET_TTL: "", PKCS8_KEY: "" });
  assert.deepEqual([config.grpcBootstrapPath, config.identity.ttlSeconds, problems, warnings], ["", 86_400, [], []]);
});

test("parseAgentConfig() warns of what was asked for and has no effect yet", () => {
  const { warnings } = parseAgentConfig({
    XDS_AUTH_PROVIDER: "gcp",
    DISABLE_ENVOY: "false",
    CREDENTIAL_FETCHER_TYPE: "JWT",
  });
  assert.deepEqual(warnings, ["XDS_AUTH_PROVIDER is set and has no effect yet"]);
});
