/** What is installed, line by line as the mesh's specification has it for the profile `demo`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_VALUES } from "#inject/injector/default-values.ts";
import { stockConfig } from "#inject/injector/inject-settings.ts";
import { parseInjectionConfig } from "#inject/injector/injector.ts";
import { STOCK_TEMPLATES } from "#inject/templates/templates.ts";
import { isRecord } from "#lib/json/is-record.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { at, installed } from "./fixture.ts";

const demo = await installed("profile=demo");

function object(name: string, objects = demo): RawObject {
  const found = objects.get(name);
  assert.ok(found, `there is no ${name}: ${[...objects.keys()].join(" ")}`);
  return found;
}

const container = (deployment: string, objects = demo) =>
  at(object(`Deployment/istio-system/${deployment}`, objects), "spec", "template", "spec", "containers", 0);
const pod = (deployment: string) => at(object(`Deployment/istio-system/${deployment}`), "spec", "template");
const names = (list: unknown) => (Array.isArray(list) ? list.map((item) => at(item, "name")) : []);
const numbers = (list: unknown, field: string) => (Array.isArray(list) ? list.map((item) => at(item, field)) : []);

/** All of the wanted fields are there; there may be others. */
function includes(actual: unknown, wanted: Readonly<Record<string, unknown>>): void {
  assert.ok(isRecord(actual));
  assert.deepEqual({ ...actual, ...wanted }, actual);
}

test("K1: demo is a control plane and two gateways", () => {
  const deployments = [...demo.keys()].filter((name) => name.startsWith("Deployment/"));
  assert.deepEqual(deployments.sort(), [
    "Deployment/istio-system/istio-egressgateway",
    "Deployment/istio-system/istio-ingressgateway",
    "Deployment/istio-system/istiod",
  ]);
});

test("I2, I3: the control plane's image, user and command line", () => {
  assert.equal(at(container("istiod"), "image"), "docker.io/mizzen/pilot:0.1.0");
  includes(at(container("istiod"), "securityContext"), {
    runAsUser: 1337,
    runAsGroup: 1337,
    readOnlyRootFilesystem: true,
  });
  assert.deepEqual(at(container("istiod"), "args"), [
    "discovery",
    "--monitoringAddr=:15014",
    "--log_output_level=default:info",
    "--domain",
    "cluster.local",
    "--keepaliveMaxServerConnectionAge",
    "30m",
  ]);
});

test("I4: its environment", () => {
  const env = at(container("istiod"), "env");
  for (const [name, value] of [
    ["REVISION", "default"],
    ["PILOT_CERT_PROVIDER", "istiod"],
    ["KUBECONFIG", "/var/run/secrets/remote/config"],
    ["PILOT_TRACE_SAMPLING", "100"],
    ["PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND", "true"],
    ["PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_INBOUND", "true"],
    ["CLUSTER_ID", "Kubernetes"],
    ["JWT_POLICY", "third-party-jwt"],
    ["ISTIOD_ADDR", "istiod.istio-system.svc:15012"],
    ["PILOT_ENABLE_ANALYSIS", "false"],
  ]) {
    assert.equal(at(env, String(name), "value"), value, name);
  }
  for (const [name, field] of [
    ["POD_NAME", "metadata.name"],
    ["POD_NAMESPACE", "metadata.namespace"],
    ["SERVICE_ACCOUNT", "spec.serviceAccountName"],
  ]) {
    assert.equal(at(env, String(name), "valueFrom", "fieldRef", "fieldPath"), field, name);
  }
});

test("I6 to I12: its ports and its readiness", () => {
  const declared = numbers(at(container("istiod"), "ports"), "containerPort");
  assert.deepEqual(declared, [8080, 15010, 15012, 15014, 15017]);
  const service = at(object("Service/istio-system/istiod"), "spec", "ports");
  assert.deepEqual(numbers(service, "port"), [15010, 15012, 443, 15014]);
  assert.equal(at(service, "https-webhook", "targetPort"), 15017);
  assert.deepEqual(at(container("istiod"), "readinessProbe"), {
    httpGet: { path: "/ready", port: 8080 },
    initialDelaySeconds: 1,
    periodSeconds: 3,
    timeoutSeconds: 5,
  });
  // Being unready, for example while the API server is away, is no reason for a restart: only silence is one.
  assert.deepEqual(at(container("istiod"), "livenessProbe", "httpGet"), { path: "/version", port: 8080 });
});

test("I13: what it mounts, and from where", () => {
  const volumes = at(pod("istiod"), "spec", "volumes");
  const sourceOf = (path: string) => {
    const mounts = at(container("istiod"), "volumeMounts");
    const mount = Array.isArray(mounts) ? mounts.find((one) => at(one, "mountPath") === path) : undefined;
    return at(volumes, String(at(mount, "name")));
  };
  const optional = { optional: true };
  assert.deepEqual(at(sourceOf("/etc/cacerts"), "secret"), { secretName: "cacerts", ...optional });
  assert.deepEqual(at(sourceOf("/var/run/secrets/istio-dns"), "emptyDir"), { medium: "Memory" });
  assert.deepEqual(at(sourceOf("/var/run/secrets/istiod/ca"), "configMap"), {
    name: "istio-ca-root-cert",
    ...optional,
  });
  assert.deepEqual(at(sourceOf("/var/run/secrets/istiod/tls"), "secret"), { secretName: "istiod-tls", ...optional });
  assert.deepEqual(at(sourceOf("/var/run/secrets/remote"), "secret"), { secretName: "istio-kubeconfig", ...optional });
  const token = at(sourceOf("/var/run/secrets/tokens"), "projected", "sources", 0, "serviceAccountToken");
  assert.deepEqual(token, { audience: "istio-ca", expirationSeconds: 43_200, path: "istio-token" });
});

test("I14: its labels, annotations and resources", () => {
  includes(at(pod("istiod"), "metadata", "labels"), {
    app: "istiod",
    istio: "pilot",
    "istio.io/rev": "default",
    "operator.istio.io/component": "Pilot",
    "sidecar.istio.io/inject": "false",
  });
  includes(at(pod("istiod"), "metadata", "annotations"), {
    "prometheus.io/port": "15014",
    "prometheus.io/scrape": "true",
  });
  assert.deepEqual(at(container("istiod"), "resources", "requests"), { cpu: "10m", memory: "100Mi" });
});

for (const [gateway, component] of [
  ["istio-ingressgateway", "IngressGateways"],
  ["istio-egressgateway", "EgressGateways"],
] as const) {
  test(`J1, J4, J6, J7: how ${gateway} runs`, () => {
    const proxy = container(gateway);
    assert.deepEqual(at(proxy, "args"), [
      "proxy",
      "router",
      "--domain",
      "$(POD_NAMESPACE).svc.cluster.local",
      "--proxyLogLevel=warning",
      "--proxyComponentLogLevel=misc:error",
      "--log_output_level=default:info",
    ]);
    const variables =
      "JWT_POLICY PILOT_CERT_PROVIDER CA_ADDR NODE_NAME POD_NAME POD_NAMESPACE INSTANCE_IP HOST_IP SERVICE_ACCOUNT " +
      "ISTIO_META_WORKLOAD_NAME ISTIO_META_OWNER ISTIO_META_MESH_ID TRUST_DOMAIN ISTIO_META_UNPRIVILEGED_POD " +
      "ISTIO_META_CLUSTER_ID ISTIO_META_NODE_NAME";
    const missing = variables.split(" ").filter((name) => !names(at(proxy, "env")).includes(name));
    assert.deepEqual(missing, []);
    assert.equal(at(proxy, "env", "ISTIO_META_UNPRIVILEGED_POD", "value"), "true");
    assert.equal(at(proxy, "env", "CA_ADDR", "value"), "istiod.istio-system.svc:15012");
    assert.deepEqual(at(proxy, "resources"), {
      limits: { cpu: "2000m", memory: "1024Mi" },
      requests: { cpu: "10m", memory: "40Mi" },
    });
    const readiness = { initialDelaySeconds: 1, timeoutSeconds: 1, periodSeconds: 2, failureThreshold: 30 };
    includes(at(proxy, "readinessProbe"), { httpGet: { path: "/healthz/ready", port: 15021 }, ...readiness });
    assert.equal(at(pod(gateway), "spec", "initContainers"), undefined);
    includes(at(pod(gateway), "spec", "securityContext"), { runAsUser: 1337, runAsGroup: 1337, runAsNonRoot: true });
  });

  test(`J3, J8: labels and annotations of ${gateway}`, () => {
    includes(at(pod(gateway), "metadata", "labels"), {
      app: gateway,
      istio: gateway.replace("istio-", ""),
      chart: "gateways",
      heritage: "Tiller",
      release: "istio",
      "operator.istio.io/component": component,
      "service.istio.io/canonical-name": gateway,
      "service.istio.io/canonical-revision": "latest",
      "sidecar.istio.io/inject": "false",
      "istio.io/rev": "default",
      "install.operator.istio.io/owning-resource": "unknown",
    });
    includes(at(pod(gateway), "metadata", "annotations"), {
      "prometheus.io/path": "/stats/prometheus",
      "prometheus.io/port": "15020",
      "prometheus.io/scrape": "true",
      "sidecar.istio.io/inject": "false",
    });
  });
}

test("J2, J10, J13: ports of the ingress gateway", () => {
  const declared = numbers(at(container("istio-ingressgateway"), "ports"), "containerPort");
  assert.deepEqual(declared, [15021, 8080, 8443, 31400, 15443, 15090]);
  const service = at(object("Service/istio-system/istio-ingressgateway"), "spec");
  assert.equal(at(service, "type"), "LoadBalancer");
  assert.deepEqual(numbers(at(service, "ports"), "port"), [15021, 80, 443, 31400, 15443]);
  assert.deepEqual(names(at(service, "ports")), ["status-port", "http2", "https", "tcp", "tls"]);
  assert.equal(at(service, "ports", "http2", "targetPort"), 8080);
});

test("J5, J9: what the ingress gateway mounts", () => {
  const mounts = at(container("istio-ingressgateway"), "volumeMounts");
  const wanted = [
    "/etc/istio/config",
    "/etc/istio/ingressgateway-ca-certs",
    "/etc/istio/ingressgateway-certs",
    "/etc/istio/pod",
    "/etc/istio/proxy",
    "/var/lib/istio/data",
    "/var/run/secrets/credential-uds",
    "/var/run/secrets/istio",
    "/var/run/secrets/tokens",
    "/var/run/secrets/workload-spiffe-credentials",
    "/var/run/secrets/workload-spiffe-uds",
  ];
  assert.deepEqual(numbers(mounts, "mountPath").sort(), wanted);
  const volumes = at(pod("istio-ingressgateway"), "spec", "volumes");
  assert.deepEqual(at(volumes, "config-volume", "configMap"), { name: "istio", optional: true });
  for (const name of ["ingressgateway-certs", "ingressgateway-ca-certs"]) {
    assert.deepEqual(at(volumes, name, "secret"), { secretName: `istio-${name}`, optional: true });
    assert.equal(at(mounts, name, "readOnly"), true);
  }
});

test("no process of the mesh may do more than it needs", () => {
  for (const [name, { spec }] of demo) {
    if (!name.startsWith("Deployment/")) continue;
    includes(at(spec, "template", "spec", "containers", 0, "securityContext"), {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      privileged: false,
      capabilities: { drop: ["ALL"] },
    });
  }
});

test("I27: the mesh config is in ConfigMap istio, with access logs", () => {
  const mesh = String(at(object("ConfigMap/istio-system/istio"), "data", "mesh"));
  assert.match(mesh, /^accessLogFile: \/dev\/stdout$/m);
  assert.match(mesh, /^ {2}discoveryAddress: istiod\.istio-system\.svc:15012$/m);
});

test("injection finds every setting that it reads in its ConfigMap", () => {
  const values = JSON.parse(String(at(object("ConfigMap/istio-system/istio-sidecar-injector"), "data", "values")));
  const missing = (wanted: unknown, given: unknown, path: string): readonly string[] => {
    if (!isRecord(wanted)) return given === undefined ? [path] : [];
    return Object.entries(wanted).flatMap(([name, inner]) => missing(inner, at(given, name), `${path}.${name}`));
  };
  assert.deepEqual(missing(DEFAULT_VALUES, values, ""), []);
});

test("the profile empty is the namespace and nothing in it", async () => {
  assert.deepEqual([...(await installed("profile=empty")).keys()], ["Namespace/istio-system"]);
});

test("two revisions share no object but the namespace, and their control planes no pod", async () => {
  const canary = await installed("profile=minimal", "revision=canary");
  assert.deepEqual(
    [...canary.keys()].filter((name) => demo.has(name)),
    ["Namespace/istio-system"],
  );
  const selector = at(object("Deployment/istio-system/istiod-canary", canary), "spec", "selector", "matchLabels");
  assert.deepEqual(selector, { app: "istiod", "istio.io/rev": "canary" });
  const labels = at(object("Deployment/istio-system/istiod-canary", canary), "spec", "template", "metadata", "labels");
  assert.notEqual(at(labels, "istio"), at(object("Service/istio-system/istiod"), "spec", "selector", "istio"));
});

test("another gateway is like the ingress gateway, under its own name", async () => {
  const more = await installed("gateways.inner.enabled=true");
  assert.deepEqual(at(object("Service/istio-system/inner", more), "spec", "selector"), {
    app: "inner",
    istio: "inner",
  });
  assert.equal(numbers(at(container("inner", more), "ports"), "containerPort").length, 6);
  assert.ok(more.has("Deployment/istio-system/istio-ingressgateway"));
});

test("the ConfigMap of injection has our templates, and those of people over them", async () => {
  const configOf = async (...set: string[]) => {
    const map = (await installed(...set)).get("ConfigMap/istio-system/istio-sidecar-injector");
    return parseInjectionConfig(String(at(map, "data", "config")));
  };
  const trimmed = (texts: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, text.trim()]));
  const { templates, ...others } = await configOf();
  assert.deepEqual(trimmed(templates), trimmed(STOCK_TEMPLATES));
  const { templates: _, ...stock } = stockConfig({});
  assert.deepEqual(others, stock);
  const changed = await configOf(
    "sidecarInjectorWebhook.templates.gateway=metadata: {}",
    "sidecarInjectorWebhook.templates.mine=spec: {}",
    "sidecarInjectorWebhook.defaultTemplates={sidecar,mine}",
    "sidecarInjectorWebhook.injectedAnnotations.a=b",
    "sidecarInjectorWebhook.neverInjectSelector[0].matchLabels.app=x",
    "global.proxy.autoInject=disabled",
  );
  assert.deepEqual(Object.keys(changed.templates).sort(), ["gateway", "grpc-agent", "grpc-simple", "mine", "sidecar"]);
  assert.equal(changed.templates.gateway, "metadata: {}");
  assert.deepEqual(changed.defaultTemplates, ["sidecar", "mine"]);
  assert.deepEqual(changed.injectedAnnotations, { a: "b" });
  assert.deepEqual(changed.neverInjectSelector, [{ matchLabels: { app: "x" } }]);
  assert.equal(changed.policy, "disabled");
});
