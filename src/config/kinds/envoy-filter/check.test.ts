import assert from "node:assert/strict";
import { test } from "node:test";
import { toJson } from "@bufbuild/protobuf";
import { parseObject } from "../parse-object.ts";
import { usableValue } from "./check.ts";

const LUA = "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua";

/** Problems of an EnvoyFilter with one patch, without the one that every EnvoyFilter has. */
function problemsOf(patch: object, spec: object = {}): string[] {
  const { problems } = parseObject({
    apiVersion: "networking.istio.io/v1alpha3",
    kind: "EnvoyFilter",
    metadata: { name: "a" },
    spec: { configPatches: [patch], ...spec },
  });
  return problems
    .filter(({ field }) => field !== "")
    .map(({ severity, field, message }) => `${severity} ${field.replace("spec.configPatches[0]", "")} ${message}`);
}

function valueProblems(applyTo: string, value: unknown, operation = "ADD"): string[] {
  return problemsOf({ applyTo, patch: { operation, value } });
}

test("every EnvoyFilter is warned of", () => {
  const { problems } = parseObject({
    apiVersion: "networking.istio.io/v1alpha3",
    kind: "EnvoyFilter",
    metadata: { name: "a" },
  });
  assert.deepEqual(
    problems.map(({ severity, field }) => [severity, field]),
    [["warning", ""]],
  );
});

test("a patch says what it applies to, what it does and with what", () => {
  assert.deepEqual(problemsOf({}), ["error .applyTo is required"]);
  assert.deepEqual(problemsOf({ applyTo: "CLUSTER" }), ["error .patch is required"]);
  assert.deepEqual(problemsOf({ applyTo: "CLUSTER", patch: {} }), ["error .patch.operation is required"]);
  assert.deepEqual(problemsOf({ applyTo: "CLUSTER", patch: { operation: "MERGE" } }), [
    "error .patch.value is required for operation MERGE",
  ]);
  assert.deepEqual(problemsOf({ applyTo: "CLUSTER", patch: { operation: "REMOVE" } }), []);
});

test("a match looks at what the patch applies to", () => {
  const remove = { operation: "REMOVE" };
  assert.deepEqual(problemsOf({ applyTo: "CLUSTER", match: { listener: {} }, patch: remove }), [
    'error .match.listener must be "cluster", since applyTo is CLUSTER',
  ]);
  assert.deepEqual(problemsOf({ applyTo: "VIRTUAL_HOST", match: { cluster: {} }, patch: remove }), [
    'error .match.cluster must be "routeConfiguration", since applyTo is VIRTUAL_HOST',
  ]);
  assert.deepEqual(problemsOf({ applyTo: "HTTP_FILTER", match: { routeConfiguration: {} }, patch: remove }), [
    'error .match.routeConfiguration must be "listener", since applyTo is HTTP_FILTER',
  ]);
  const filter = (applyTo: string, value: object) =>
    problemsOf({ applyTo, match: { listener: { filterChain: { filter: value } } }, patch: remove });
  const at = ".match.listener.filterChain.filter";
  assert.deepEqual(filter("NETWORK_FILTER", {}), [`error ${at}.name is required`]);
  assert.deepEqual(filter("NETWORK_FILTER", { name: "a", subFilter: { name: "b" } }), [
    `error ${at}.subFilter can be used only when applyTo is HTTP_FILTER`,
  ]);
  assert.deepEqual(filter("HTTP_FILTER", { name: "a", subFilter: { name: "b" } }), [
    `error ${at}.subFilter needs a filter of name "envoy.filters.network.http_connection_manager", not "a"`,
  ]);
  assert.deepEqual(filter("HTTP_FILTER", { name: "envoy.http_connection_manager", subFilter: {} }), [
    `error ${at}.subFilter.name is required`,
  ]);
  assert.deepEqual(filter("LISTENER", { name: "envoy.tcp_proxy" }), [
    `warning ${at} has no effect when applyTo is LISTENER`,
    `warning ${at}.name is "envoy.tcp_proxy", which is called "envoy.filters.network.tcp_proxy" today`,
  ]);
});

test("a match of waypoints needs their context", () => {
  assert.deepEqual(problemsOf({ match: { context: "GATEWAY", waypoint: {} } }), [
    "error .match.waypoint needs the context WAYPOINT",
  ]);
});

test("workloads are selected by labels or by what they serve, not both", () => {
  const targetRefs = [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "a" }];
  const remove = { applyTo: "CLUSTER", patch: { operation: "REMOVE" } };
  assert.deepEqual(problemsOf(remove, { targetRefs, workloadSelector: { labels: { a: "b" } } }), [
    "error spec.targetRefs cannot be set together with workloadSelector",
  ]);
});

test("the proxy version is a regular expression of RE2", () => {
  const [problem] = problemsOf({
    applyTo: "CLUSTER",
    match: { proxy: { proxyVersion: "^1\\.(?=2)" } },
    patch: { operation: "REMOVE" },
  });
  assert.match(problem ?? "", /^error \.match\.proxy\.proxyVersion must be a regular expression of RE2/);
});

test("what has no effect is said", () => {
  assert.match(
    String(problemsOf({ match: { context: "WAYPOINT", waypoint: {} } })),
    /^warning \.match\.context has no effect/,
  );
  assert.match(String(valueProblems("BOOTSTRAP", {}, "MERGE")), /^warning \.applyTo has no effect/);
  assert.deepEqual(problemsOf({ applyTo: "CLUSTER", patch: { operation: "REMOVE" } }, { workloadSelector: {} }), [
    "warning spec.workloadSelector.labels selects everything, since it is empty",
  ]);
});

test("a value is the JSON form of its message, with names in either case", () => {
  const typed_config = { "@type": LUA, default_source_code: { inlineString: "x" } };
  assert.deepEqual(valueProblems("HTTP_FILTER", { name: "lua", typed_config }), []);
  assert.match(String(valueProblems("HTTP_FILTER", { name: 5 })), /^error \.patch\.value cannot decode field/);
  assert.match(String(valueProblems("CLUSTER", { name: "a", connect_timeout: "soon" })), /^error \.patch\.value/);
});

test("a type that does not exist is an error, one of v2 with a hint", () => {
  const filter = (type: string) => valueProblems("HTTP_FILTER", { name: "a", typed_config: { "@type": type } });
  assert.deepEqual(filter("type.googleapis.com/envoy.Nothing"), [
    'error .patch.value names the type "type.googleapis.com/envoy.Nothing", which does not exist',
  ]);
  assert.deepEqual(filter("type.googleapis.com/envoy.config.filter.http.lua.v2.Lua"), [
    'error .patch.value names the type "type.googleapis.com/envoy.config.filter.http.lua.v2.Lua", which does not exist: Envoy speaks v3 only',
  ]);
});

test("types of extensions that only some builds of Envoy have, as Istio's, are known", () => {
  const problems = (type: string, fields: object) =>
    valueProblems("HTTP_FILTER", { name: "a", typed_config: { "@type": `type.googleapis.com/${type}`, ...fields } });
  const go = "envoy.extensions.filters.http.golang.v3alpha.Config";
  assert.deepEqual(problems(go, { library_id: "x", library_path: "/x.so", plugin_name: "x" }), []);
  assert.match(String(problems(go, { library_id: 1 })), /^error \.patch\.value cannot decode field/);
  assert.deepEqual(problems("envoy.extensions.filters.network.kafka_broker.v3.KafkaBroker", { stat_prefix: "k" }), []);
  assert.deepEqual(
    problems("envoy.extensions.filters.network.postgres_proxy.v3alpha.PostgresProxy", { stat_prefix: "p" }),
    [],
  );
  assert.deepEqual(problems("envoy.extensions.network.connection_balance.dlb.v3alpha.Dlb", { id: 1 }), []);
  assert.deepEqual(problems("io.istio.http.peer_metadata.Config", { shared_with_upstream: true }), []);
});

test("a TypedStruct may hold what nobody here knows", () => {
  const typed_config = {
    "@type": "type.googleapis.com/udpa.type.v1.TypedStruct",
    type_url: "type.googleapis.com/my.own.Filter",
    value: { any: [1, "b"] },
  };
  assert.deepEqual(valueProblems("HTTP_FILTER", { name: "mine", typed_config }), []);
});

test("unknown fields and filters without configuration are warned of", () => {
  const [unknown] = valueProblems("CLUSTER", { name: "a", newest_field: 1 });
  assert.match(unknown ?? "", /^warning \.patch\.value .*key "newest_field" is unknown/);
  assert.deepEqual(valueProblems("HTTP_FILTER", { name: "a" }), [
    'warning .patch.value has no typed_config for "a": Envoy no longer finds a filter by its name',
  ]);
});

test("constraints of Envoy's messages are checked, inside packed messages too", () => {
  assert.deepEqual(valueProblems("VIRTUAL_HOST", { name: "a" }), [
    "warning .patch.value.domains must have at least 1 entry: the patch is not sent",
  ]);
  assert.deepEqual(valueProblems("CLUSTER", { connect_timeout: "0s" }), [
    "warning .patch.value.name must not be empty: the patch is not sent",
    "warning .patch.value.connectTimeout must be above 0s, not 0s: the patch is not sent",
  ]);
  const typed_config = {
    "@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
    max_connect_attempts: 0,
  };
  assert.deepEqual(valueProblems("NETWORK_FILTER", { name: "tcp", typed_config }), [
    "warning .patch.value.typedConfig must have one of cluster, weightedClusters: the patch is not sent",
    "warning .patch.value.typedConfig.statPrefix must not be empty: the patch is not sent",
    "warning .patch.value.typedConfig.maxConnectAttempts must be at least 1, not 0: the patch is not sent",
  ]);
});

test("limits of times are told as times, and what is wrong once", () => {
  assert.deepEqual(valueProblems("CLUSTER", { dns_refresh_rate: "1ms" }, "MERGE"), [
    "warning .patch.value.dnsRefreshRate must be above 1ms, not 1ms: the patch is not sent",
  ]);
  const [problem = ""] = valueProblems("CLUSTER", { lb_policy: "RANDOM", lbPolicy: "MAGLEV" });
  assert.match(problem, /set multiple times$/);
  assert.equal(problem.split("set multiple times").length, 2);
});

test("a value beside REMOVE need not be whole either", () => {
  assert.deepEqual(valueProblems("VIRTUAL_HOST", { name: "a" }, "REMOVE"), []);
  assert.match(valueProblems("CLUSTER", { nonsense: 1 }, "REMOVE").join(), /"nonsense" is unknown/);
  assert.match(valueProblems("CLUSTER", { connect_timeout: "x" }, "REMOVE").join(), /must be a duration/);
});

test("what is merged need not be whole", () => {
  assert.deepEqual(valueProblems("VIRTUAL_HOST", { include_request_attempt_count: true }, "MERGE"), []);
  assert.deepEqual(valueProblems("HTTP_ROUTE", { route: { timeout: "1s" } }, "MERGE"), []);
  assert.deepEqual(valueProblems("CLUSTER", { connect_timeout: "0s" }, "MERGE"), [
    "warning .patch.value.connectTimeout must be above 0s, not 0s: the patch is not sent",
  ]);
});

test("entries of maps and items of lists are whole even when they are merged", () => {
  const options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
  const merged = (fields: object) => ({
    typed_extension_protocol_options: { [options]: { "@type": `type.googleapis.com/${options}`, ...fields } },
  });
  const idle = { common_http_protocol_options: { idle_timeout: "9s" } };
  assert.deepEqual(valueProblems("CLUSTER", merged(idle), "MERGE"), [
    `warning .patch.value.typedExtensionProtocolOptions["${options}"] must have one of explicitHttpConfig, useDownstreamProtocolConfig, autoConfig: the patch is not sent`,
  ]);
  const whole = { ...idle, explicit_http_config: { http2_protocol_options: {} } };
  assert.deepEqual(valueProblems("CLUSTER", merged(whole), "MERGE"), []);
  assert.deepEqual(valueProblems("VIRTUAL_HOST", { routes: [{ name: "a" }] }, "MERGE"), [
    "warning .patch.value.routes[0] must have one of route, redirect, directResponse, filterAction, nonForwardingAction: the patch is not sent",
    "warning .patch.value.routes[0].match is required: the patch is not sent",
  ]);
});

test("durations of a value are read as Go reads them, wherever they are", () => {
  const limit = "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit";
  const typed_config = { "@type": limit, stat_prefix: "s", token_bucket: { max_tokens: 1, fill_interval: "1m30s" } };
  const thresholds = { healthy_threshold: 1, unhealthy_threshold: 1 };
  const health_checks = [{ timeout: ".5s", interval: "1h", ...thresholds, tcp_health_check: {} }];
  const value = { connect_timeout: "500ms", health_checks };
  assert.deepEqual(valueProblems("HTTP_FILTER", { name: "l", typed_config }), []);
  assert.deepEqual(valueProblems("CLUSTER", value, "MERGE"), []);
  const { type, message } = usableValue({ applyTo: "CLUSTER", patch: { operation: "MERGE", value } }) ?? {};
  assert.ok(type !== undefined && message !== undefined);
  assert.deepEqual(toJson(type, message), {
    connectTimeout: "0.500s",
    healthChecks: [
      { timeout: "0.500s", interval: "3600s", healthyThreshold: 1, unhealthyThreshold: 1, tcpHealthCheck: {} },
    ],
  });
});

test("a value that proto3 JSON would take or leave out in part is refused, with where it is", () => {
  assert.deepEqual(valueProblems("CLUSTER", { name: "c", health_checks: [{ timeout: "1sx" }] }), [
    'error .patch.value has "1sx" in health_checks[0].timeout, which must be a duration such as "1.5s" or "250ms"',
  ]);
  assert.deepEqual(valueProblems("HTTP_FILTER", { name: "f", typed_config: {} }), [
    'error .patch.value has no "@type" in typed_config, which says what is configured',
  ]);
  assert.match(
    valueProblems("CLUSTER", { name: "c", type: "static" }).join(),
    /^error \.patch\.value has "static" in type, which must be one of STATIC, STRICT_DNS, /,
  );
});

test("values of hostile shape are refused", () => {
  const polluted = JSON.parse('{"metadata": {"filter_metadata": {"a": {"__proto__": {"b": 1}}}}}');
  assert.deepEqual(valueProblems("CLUSTER", polluted, "MERGE"), ['error .patch.value cannot have the key "__proto__"']);
  let deep: object = {};
  for (let i = 0; i < 20_000; i++) deep = { a: deep };
  const [problem] = valueProblems("CLUSTER", { metadata: { filter_metadata: { a: deep } } }, "MERGE");
  assert.match(problem ?? "", /^error \.patch\.value/);
});
