import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Command } from "commander";
import type { Env } from "#lib/env/env-table.ts";
import { type DiscoveryConfig, flagDefaults, parseDiscoveryConfig } from "./config.ts";
import { addFlags, describeFlags, flagsOf, ineffectiveFlags, type ParsedFlags } from "./flags.ts";

function flags(args: readonly string[], env: Env = {}): ParsedFlags {
  const command = new Command().exitOverride();
  const defaults = flagDefaults(env);
  addFlags(command, defaults);
  command.parse(args, { from: "user" });
  return flagsOf(command, defaults);
}

function config(args: readonly string[], env: Env = {}): DiscoveryConfig {
  const parsed = parseDiscoveryConfig(flags(args, env), env);
  assert.deepEqual(parsed.problems, []);
  return parsed.config;
}

function problems(args: readonly string[], env: Env = {}): readonly string[] {
  return parseDiscoveryConfig(flags(args, env), env).problems;
}

function warnings(env: Env): readonly string[] {
  return parseDiscoveryConfig(flags([], env), env).warnings;
}

describe("parseDiscoveryConfig()", () => {
  test("reads how many requests are traced as a percentage", () => {
    assert.equal(config([], { PILOT_TRACE_SAMPLING: "0.5" }).features.traceSampling, 0.5);
    for (const wrong of ["abc", "-1", "100.1"]) {
      assert.deepEqual(warnings({ PILOT_TRACE_SAMPLING: wrong }), [
        `PILOT_TRACE_SAMPLING: must be a number from 0 to 100, not "${wrong}": 1 is used`,
      ]);
    }
  });

  test("has istiod's defaults", () => {
    const { listen, keepalive, shutdownMs, ca, namespace, features, folders, meshConfig } = config([]);
    assert.deepEqual(listen, {
      http: { host: "", port: 8080 },
      monitoring: { host: "", port: 15014 },
      grpc: { host: "", port: 15010 },
      secureGrpc: { host: "", port: 15012 },
    });
    assert.deepEqual(keepalive, { intervalMs: 30_000, timeoutMs: 10_000, maxConnectionAgeMs: undefined });
    assert.equal(shutdownMs, 10_000);
    assert.deepEqual(ca, {
      enabled: true,
      folder: "./etc/cacerts",
      passphraseFile: undefined,
      defaultTtlMs: 24 * 3_600_000,
      maxTtlMs: 90 * 24 * 3_600_000,
      rootLifetimeMs: 3650 * 24 * 3_600_000,
      rootKey: "P-256",
      gracePercent: 20,
      checkIntervalMs: 3_600_000,
      requestsPerIdentity: 100,
      tellsRevocations: true,
      trustedNodeAccounts: [],
      multiRoot: false,
    });
    assert.equal(namespace, "istio-system");
    assert.equal(features.clusterId, "Kubernetes");
    assert.deepEqual(folders, []);
    assert.deepEqual(meshConfig, { file: "./etc/istio/config/mesh", isGiven: false });
  });

  test("turns a listener off by an empty address", () => {
    assert.equal(config(["--grpcAddr="]).listen.grpc, undefined);
    assert.equal(config(["--secureGRPCAddr", ""]).listen.secureGrpc, undefined);
  });

  test("reads who has to prove what", () => {
    const proof = (env: Env) => config([], env).xds.proofOn;
    assert.deepEqual(
      [proof({}), proof({ XDS_AUTH_PLAINTEXT: "true" }), proof({ XDS_AUTH: "false" })],
      ["tls", "all", "none"],
    );
    const { trustedGateways, callLimits } = config([], {
      TRUSTED_GATEWAY_CIDR: "10.0.0.0/8,fd00::/8",
      ISTIO_GPRC_MAXRECVMSGSIZE: "1000",
      ISTIO_GPRC_MAXSTREAMS: "7",
    }).xds;
    assert.deepEqual(trustedGateways, ["10.0.0.0/8", "fd00::/8"]);
    assert.deepEqual(callLimits, { maxRequestBytes: 1000, maxStreams: 7 });
    assert.equal(problems([], { TRUSTED_GATEWAY_CIDR: "10.0.0.1" }).length, 1);
  });

  test("takes several folders", () => {
    assert.deepEqual(config(["--configDir", "a", "--configDir=b"]).folders, ["a", "b"]);
  });

  test("lets flags win over the environment, and the environment over defaults", () => {
    const env = { POD_NAMESPACE: "mesh", CLUSTER_ID: "west", GRPC_KEEPALIVE_INTERVAL: "7s" };
    assert.equal(config([], env).keepalive.intervalMs, 7_000);
    assert.equal(config(["--keepaliveInterval=8s"], env).keepalive.intervalMs, 8_000);
    assert.equal(config([], env).namespace, "mesh");
    assert.equal(config([], env).features.clusterId, "west");
    assert.equal(config(["-n", "other", "--clusterID=east"], env).namespace, "other");
    assert.equal(config(["-n", "other", "--clusterID=east"], env).features.clusterId, "east");
  });

  test("reads the CA's settings", () => {
    const { ca } = config([], {
      ROOT_CA_DIR: "/ca",
      DEFAULT_WORKLOAD_CERT_TTL: "1h",
      MAX_WORKLOAD_CERT_TTL: "2h",
      CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE: "4096",
      CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE: "40",
      CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL: "-1s",
      CA_KEY_PASSPHRASE_FILE: "/secret",
      CA_REQUESTS_PER_SECOND_PER_IDENTITY: "7",
      ISTIO_MULTIROOT_MESH: "true",
      ENABLE_CA_SERVER: "false",
    });
    assert.deepEqual(ca, {
      enabled: false,
      folder: "/ca",
      defaultTtlMs: 3_600_000,
      maxTtlMs: 7_200_000,
      rootLifetimeMs: 3650 * 24 * 3_600_000,
      rootKey: { rsaBits: 4096 },
      passphraseFile: "/secret",
      gracePercent: 40,
      checkIntervalMs: 0,
      requestsPerIdentity: 7,
      tellsRevocations: true,
      trustedNodeAccounts: [],
      multiRoot: true,
    });
  });

  test("reads JWT_RULE, log levels and a finite connection age", () => {
    const { jwtRule, log, keepalive } = config(
      [
        "--log_output_level=default:warn,ads:debug",
        "--log_as_json",
        "--log_caller=ads,ca",
        "--log_stacktrace_level=error",
        "--keepaliveMaxServerConnectionAge=30m",
      ],
      { JWT_RULE: '{"issuer":"me","jwks_uri":"http://x"}' },
    );
    assert.equal(jwtRule?.issuer, "me");
    assert.deepEqual(log, {
      json: true,
      levels: { default: "warn", ads: "debug" },
      stackLevels: { default: "error" },
      callers: new Set(["ads", "ca"]),
      targets: ["stdout"],
    });
    assert.equal(keepalive.maxConnectionAgeMs, 1_800_000);
  });

  test("goes on with the default of a variable whose value is none, as istiod does", () => {
    const env = { MAX_WORKLOAD_CERT_TTL: "soon", ENABLE_CA_SERVER: "maybe" };
    assert.deepEqual(config([], env).ca, config([]).ca);
    assert.deepEqual(
      warnings(env).map((warning) => warning.slice(0, warning.indexOf(":"))),
      ["ENABLE_CA_SERVER", "MAX_WORKLOAD_CERT_TTL"],
    );
  });

  test("reports every problem with its flag or variable", () => {
    const args = [
      "--grpcAddr=15010",
      "--shutdownDuration=5",
      "--log_output_level=loud",
      "--log_stacktrace_level=deep",
      "--log_as_json=perhaps",
      "--tlsCertFile=x",
    ];
    const env = {
      JWT_RULE: '{"audiences":1}',
      CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE: "1024",
      CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE: "101",
    };
    assert.deepEqual(
      problems(args, env).map((problem) => problem.slice(0, problem.indexOf(":"))),
      [
        "--grpcAddr",
        "--shutdownDuration",
        "--tlsCertFile, --tlsKeyFile and --caCertFile belong together",
        "--log_as_json",
        "--log_output_level",
        "--log_stacktrace_level",
        "CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE",
        "CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE",
        "JWT_RULE",
        "JWT_RULE",
      ],
    );
  });
});

test("keys of token issuers are fetched as the environment says", () => {
  assert.equal(config([]).features.keyFetching, "control-plane");
  for (const [text, mode] of [
    ["true", "hybrid"],
    ["hybrid", "hybrid"],
    ["envoy", "envoy"],
    ["istiod", "control-plane"],
  ])
    assert.equal(config([], { PILOT_JWT_ENABLE_REMOTE_JWKS: text }).features.keyFetching, mode);
  const { keys } = config([], {
    PILOT_JWKS_ALLOW_LOCAL: "true",
    ALLOWED_CIDRS_IN_JWKS_URIS: "192.168.7.0/24",
    BLOCKED_CIDRS_IN_JWKS_URIS: "10.0.0.0/8, fd00::/8",
    PILOT_JWT_PUB_KEY_REFRESH_INTERVAL: "1m",
  });
  assert.deepEqual(keys, {
    allowLocal: true,
    allowedRanges: ["192.168.7.0/24"],
    blockedRanges: ["10.0.0.0/8", "fd00::/8"],
    insecure: false,
    refreshMs: 60_000,
    extraRootsFile: "/cacerts/extra.pem",
  });
  assert.equal(config([]).keys.allowLocal, false);
  assert.deepEqual(problems([], { BLOCKED_CIDRS_IN_JWKS_URIS: "10.0.0.0/33,x" }), [
    'BLOCKED_CIDRS_IN_JWKS_URIS: must be ranges of addresses such as 10.0.0.0/8, not "10.0.0.0/33,x"',
  ]);
});

test("the wait for further changes is as asked for, else up to us", () => {
  assert.deepEqual(config([]).xds.debounce, {});
  const env = { PILOT_DEBOUNCE_AFTER: "250ms", PILOT_DEBOUNCE_MAX: "3s", PILOT_ENABLE_EDS_DEBOUNCE: "false" };
  assert.deepEqual(config([], env).xds.debounce, { afterMs: 250, maxMs: 3000, endpointsWait: false });
  const wrong = { PILOT_DEBOUNCE_AFTER: "soon", PILOT_DEBOUNCE_MAX: "3", PILOT_ENABLE_EDS_DEBOUNCE: "no" };
  assert.equal(warnings(wrong).length, 3);
  assert.deepEqual(config([], wrong).xds.debounce, {});
});

test("further namespaces may look at everything, or all", () => {
  assert.deepEqual(config([]).debugAccess, { keepsApart: true, seeingAll: [] });
  const env = { DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES: "ops, sre", ENABLE_DEBUG_ENDPOINT_AUTH: "false" };
  assert.deepEqual(config([], env).debugAccess, { keepsApart: false, seeingAll: ["ops", "sre"] });
});

test("WorkloadEntries of further clusters count unless they, or all that Services select, are turned off", () => {
  const withEntries = (env: Env) => config([], env).remotes?.withEntries;
  assert.equal(withEntries({}), true);
  assert.equal(withEntries({ PILOT_ENABLE_CROSS_CLUSTER_WORKLOAD_ENTRY: "false" }), false);
  assert.equal(withEntries({ PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES: "false" }), false);
});

test("ranges of automatic addresses are of their family", () => {
  const wrong = { PILOT_IP_AUTOALLOCATE_IPV4_PREFIX: "fd00::/64", PILOT_IP_AUTOALLOCATE_IPV6_PREFIX: "10.0.0.0" };
  assert.deepEqual(problems([], wrong), [
    'PILOT_IP_AUTOALLOCATE_IPV4_PREFIX: must be a range of IPv4 addresses such as "240.240.0.0/16", not "fd00::/64"',
    'PILOT_IP_AUTOALLOCATE_IPV6_PREFIX: must be a range of IPv6 addresses such as "2001:2::/48", not "10.0.0.0"',
  ]);
  const env = { PILOT_IP_AUTOALLOCATE_IPV4_PREFIX: "10.9.0.0/16", PILOT_UNIFIED_SIDECAR_SCOPE: "false" };
  const { features } = config([], env);
  assert.equal(features.autoRange4, "10.9.0.0/16");
  assert.equal(features.unifiedScope, false);
});

test("describeFlags() names every flag once, in order, as Istio logs them", () => {
  const lines = describeFlags(flags(["--registries=", "--configDir", "a", "--configDir", "b"]).values);
  assert.ok(lines.includes('FLAG: --configDir="[a,b]"'));
  assert.ok(lines.includes('FLAG: --registries="[]"'));
  assert.ok(lines.includes('FLAG: --grpcAddr=":15010"'));
  assert.deepEqual(lines, lines.toSorted());
});

test("ineffectiveFlags() speaks of what was asked for and does not happen", () => {
  assert.deepEqual(ineffectiveFlags(flags(["--registries=", "--httpsAddr=:1"])), []);
  assert.deepEqual(ineffectiveFlags(flags(["--registries=", "--profile=false"])), [
    "--profile: there is no pprof in Node",
  ]);
});

test("a switch may stand without a value", () => {
  assert.equal(config(["--log_as_json", "--grpcAddr="]).log.json, true);
  assert.equal(config(["--log_as_json=false"]).log.json, false);
});
