import assert from "node:assert/strict";
import { test } from "node:test";
import { injectPod } from "./inject-pod.ts";
import type { InjectionRequest } from "./injection-request.ts";
import { DEFAULT_VALUES } from "./injector/default-values.ts";
import { type FixtureInput, testInjector } from "./injector/fixture.ts";
import { InjectionError } from "./injector/injection-error.ts";
import { proxyConfigOf } from "./mesh/proxy-config.ts";
import { ownerOf } from "./pod/owner.ts";
import { type Container, findContainer, type Pod, readPod } from "./pod/pod.ts";

const APP = { name: "app", image: "app:1", ports: [{ name: "http", containerPort: 8080 }] };

function pod(metadata: object = {}, spec: object = {}): object {
  return { metadata: { name: "p", namespace: "ns", ...metadata }, spec: { containers: [APP], ...spec } };
}

function inject(value: object, fixture: FixtureInput = {}, request: Partial<InjectionRequest> = {}): Pod {
  const injector = testInjector(fixture);
  const given = readPod(value);
  const { labels = {}, annotations = {} } = given.metadata;
  const target = { namespace: "ns", labels, annotation: annotations["proxy.istio.io/config"] };
  const sources = { ...injector.mesh, objects: [] };
  return injectPod({
    pod: given,
    owner: ownerOf(given),
    proxyConfig: proxyConfigOf(target, sources),
    nativeSidecars: false,
    proxyEnvironment: {},
    namespaceAnnotations: undefined,
    injector,
    ...request,
  });
}

function proxyOf(injected: Pod): Container {
  return findContainer(injected, "istio-proxy") ?? assert.fail("no proxy");
}

function variable(injected: Pod, name: string): string | undefined {
  return proxyOf(injected).env?.find((one) => one.name === name)?.value;
}

const names = (list: readonly { readonly name: string }[] | null | undefined) => list?.map(({ name }) => name);

test("a pod gets an init container and a proxy behind its own containers", () => {
  const { metadata, spec } = inject(pod());
  assert.deepEqual(names(spec.containers), ["app", "istio-proxy"]);
  assert.deepEqual(names(spec.initContainers), ["istio-init"]);
  assert.equal(metadata.labels?.["security.istio.io/tlsMode"], "istio");
  assert.equal(
    metadata.annotations?.["sidecar.istio.io/status"],
    '{"initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":["workload-socket","credential-socket","workload-certs","istio-envoy","istio-data","istio-podinfo","istio-token","istiod-ca-cert","istio-ca-crl"],"imagePullSecrets":null,"revision":"default"}',
  );
});

test("a native sidecar is an init container that stays, before those of the application", () => {
  const { spec } = inject(pod({}, { initContainers: [{ name: "mine" }] }), {}, { nativeSidecars: true });
  assert.deepEqual(names(spec.initContainers), ["istio-init", "istio-proxy", "mine"]);
  assert.equal(spec.initContainers?.[1]?.restartPolicy, "Always");
  const asked = inject(pod({ annotations: { "sidecar.istio.io/nativeSidecar": "true" } }));
  assert.deepEqual(names(asked.spec.initContainers), ["istio-init", "istio-proxy"]);
});

test("with CNI a validation container comes first, and annotations tell the plugin", () => {
  const values = { ...DEFAULT_VALUES, pilot: { cni: { enabled: true, provider: "multus" } } };
  const { metadata, spec } = inject(pod({}, { initContainers: [{ name: "mine" }] }), { values });
  assert.deepEqual(names(spec.initContainers), ["istio-validation", "mine"]);
  assert.equal(metadata.annotations?.["k8s.v1.cni.cncf.io/networks"], "default/istio-cni");
  assert.equal(metadata.annotations?.["traffic.sidecar.istio.io/includeInboundPorts"], "*");
});

test("the application may be held until the proxy runs", () => {
  const held = inject(pod({ annotations: { "proxy.istio.io/config": "holdApplicationUntilProxyStarts: true" } }));
  assert.deepEqual(names(held.spec.containers), ["istio-proxy", "app"]);
  assert.deepEqual(proxyOf(held).lifecycle?.postStart, { exec: { command: ["pilot-agent", "wait"] } });
});

test("probes are turned to the agent; exec stays", () => {
  const container = {
    ...APP,
    readinessProbe: { httpGet: { path: "/r", port: "http", scheme: "HTTPS" }, timeoutSeconds: 7 },
    livenessProbe: { exec: { command: ["true"] } },
    startupProbe: { grpc: { port: 9000 } },
    lifecycle: { preStop: { tcpSocket: { port: 8080 } } },
  };
  const injected = inject(pod({}, { containers: [container] }));
  const app = findContainer(injected, "app");
  assert.deepEqual(app?.readinessProbe, {
    httpGet: { path: "/app-health/app/readyz", port: 15020, scheme: "HTTP" },
    timeoutSeconds: 7,
  });
  assert.deepEqual(app?.livenessProbe, { exec: { command: ["true"] } });
  assert.deepEqual(app?.startupProbe, { httpGet: { path: "/app-health/app/startupz", port: 15020 } });
  assert.deepEqual(app?.lifecycle, { preStop: { httpGet: { path: "/app-lifecycle/app/prestopz", port: 15020 } } });
  assert.deepEqual(JSON.parse(variable(injected, "ISTIO_KUBE_APP_PROBERS") ?? ""), {
    "/app-health/app/readyz": { httpGet: { path: "/r", port: 8080, scheme: "HTTPS" }, timeoutSeconds: 7 },
    "/app-health/app/startupz": { grpc: { port: 9000, service: null } },
    "/app-lifecycle/app/prestopz": { tcpSocket: { port: 8080 } },
  });
});

test("annotations of Prometheus in any spelling move to the agent", () => {
  const injected = inject(pod({ annotations: { "prometheus.io/port": "9090", "prometheus-io/path": "/m" } }));
  const { annotations = {} } = injected.metadata;
  assert.deepEqual(
    Object.entries(annotations)
      .filter(([name]) => name.startsWith("prometheus"))
      .sort(),
    [
      ["prometheus.io/path", "/stats/prometheus"],
      ["prometheus.io/port", "15020"],
      ["prometheus.io/scrape", "true"],
    ],
  );
  assert.equal(variable(injected, "ISTIO_PROMETHEUS_ANNOTATIONS"), '{"scrape":"","path":"/m","port":"9090"}');
  const off = inject(pod({ annotations: { "prometheus.io/scrape": "false" } }));
  assert.equal(off.metadata.annotations?.["prometheus.io/port"], undefined);
});

test("a container of the user goes over the template's, and is kept for another injection", () => {
  const own = {
    name: "istio-proxy",
    image: "auto",
    resources: { requests: { cpu: "2" } },
    securityContext: { runAsUser: 2000 },
  };
  const injected = inject(pod({}, { containers: [APP, own] }));
  const proxy = proxyOf(injected);
  assert.match(proxy.image ?? "", /proxyv2/);
  assert.deepEqual((proxy.resources as { requests: object }).requests, { cpu: "2", memory: "128Mi" });
  const init = findContainer(injected, "istio-init");
  assert.equal(init?.args?.[init.args.indexOf("-u") + 1], "2000");
  assert.match(injected.metadata.annotations?.["proxy.istio.io/overrides"] ?? "", /"runAsUser":2000/);
});

test("injecting twice gives what injecting once gives", () => {
  const probed = { ...APP, readinessProbe: { httpGet: { port: 8080 } } };
  const once = inject(pod({ annotations: { "prometheus.io/port": "9" } }, { containers: [probed] }));
  assert.deepEqual(inject(once), once);
});

test("the path of the webhook names cluster and network; a label of the pod counts more", () => {
  const proxyEnvironment = { ISTIO_META_CLUSTER_ID: "c1", ISTIO_META_NETWORK: "n1" };
  const injected = inject(pod(), {}, { proxyEnvironment });
  assert.deepEqual(
    [variable(injected, "ISTIO_META_CLUSTER_ID"), variable(injected, "ISTIO_META_NETWORK")],
    ["c1", "n1"],
  );
  assert.equal(injected.metadata.labels?.["topology.istio.io/network"], "n1");
  const labelled = inject(pod({ labels: { "topology.istio.io/network": "n2" } }), {}, { proxyEnvironment });
  assert.equal(variable(labelled, "ISTIO_META_NETWORK"), "n2");
});

test("pods choose templates, also those of users, and aliases stand for several", () => {
  const templates = { a: "metadata: {labels: {a: x}}", b: "metadata: {labels: {b: {{ .ObjectMeta.Name | quote }}}}" };
  const config = { templates, aliases: { both: ["a", "b"] } };
  const injected = inject(pod({ annotations: { "inject.istio.io/templates": " both " } }), { config });
  assert.deepEqual(injected.metadata.labels, { a: "x", b: "p" });
  assert.throws(
    () => inject(pod({ annotations: { "inject.istio.io/templates": "c" } }), { config }),
    /requested template "c" not found; have a, b/,
  );
});

test("of two proxies, in containers and init containers, the first is told what a proxy is told", () => {
  const annotations = { "prometheus.io/port": "9", "prometheus.io/scrape": "true" };
  const app = { ...APP, readinessProbe: { httpGet: { port: 80 } } };
  const own = { name: "istio-proxy", image: "own" };
  const given = pod({ annotations }, { containers: [app], initContainers: [own] });
  const injected = inject(given, {}, { proxyEnvironment: { ISTIO_META_NETWORK: "n" } });
  const names = (list: readonly Container[] | null | undefined) =>
    (list ?? []).filter(({ name }) => name === "istio-proxy").flatMap(({ env = [] }) => env.map(({ name }) => name));
  for (const name of ["ISTIO_META_NETWORK", "ISTIO_PROMETHEUS_ANNOTATIONS", "ISTIO_KUBE_APP_PROBERS"])
    assert.ok(names(injected.spec.containers).includes(name), name);
  assert.deepEqual(names(injected.spec.initContainers), []);
});

test("a gateway is a pod whose proxy is its own container", () => {
  const gateway = pod(
    { annotations: { "inject.istio.io/templates": "gateway" }, labels: { app: "gw" } },
    { containers: [{ name: "istio-proxy", image: "auto" }] },
  );
  const { spec } = inject(gateway);
  assert.deepEqual(names(spec.containers), ["istio-proxy"]);
  assert.equal(spec.containers?.[0]?.args?.[1], "router");
  assert.deepEqual(spec.initContainers, undefined);
  assert.deepEqual(spec.securityContext, { sysctls: [{ name: "net.ipv4.ip_unprivileged_port_start", value: "0" }] });
});

test("agents of gRPC applications run without Envoy", () => {
  const injected = inject(pod({ annotations: { "inject.istio.io/templates": "grpc-agent" } }));
  assert.equal(variable(injected, "DISABLE_ENVOY"), "true");
  const app = findContainer(injected, "app");
  assert.deepEqual(names(app?.env), ["GRPC_XDS_EXPERIMENTAL_SECURITY_SUPPORT", "GRPC_XDS_BOOTSTRAP"]);
  const simple = inject(pod({ annotations: { "inject.istio.io/templates": "grpc-simple" } }));
  assert.deepEqual(names(simple.spec.initContainers), ["grpc-bootstrap-init"]);
});

test("wrong annotations and templates that break are refused with their names", () => {
  const refused = (annotations: object, message: RegExp) =>
    assert.throws(
      () => inject(pod({ annotations })),
      (thrown) => thrown instanceof InjectionError && message.test(thrown.message),
    );
  refused({ "traffic.sidecar.istio.io/excludeInboundPorts": "a" }, /excludeInboundPorts invalid/);
  refused({ "traffic.sidecar.istio.io/includeOutboundIPRanges": "10.0.0.0" }, /includeIPRanges invalid/);
  refused({ "sidecar.istio.io/proxyCPU": "1\n- name: evil" }, /control characters/);
  refused({ "sidecar.istio.io/interceptionMode": "X" }, /interceptionMode invalid/);
  refused({ "proxy.istio.io/config": "concurrency: many" }, /concurrency must be/);
  refused({ "proxy.istio.io/config": "drainDuration: 1ms" }, /drainDuration/);
  refused({ "proxy.istio.io/overrides": "{" }, /no JSON object/);
  const broken = (template: string) => () => inject(pod(), { config: { templates: { sidecar: template } } });
  assert.throws(broken("{{ .Nope }}"), /can't evaluate field Nope/);
  assert.throws(broken("{{ "), /template "sidecar" cannot be read/);
  assert.throws(broken("spec: ["), /gives what is not YAML/);
  assert.throws(broken("- a"), /gives no object/);
  assert.throws(broken("spec: {containers: [{image: x}]}"), /does not fit the pod/);
  assert.throws(broken("spec: {hostNetwork: maybe}"), /hostNetwork must be true or false/);
});

test("what users write in annotations stays text", () => {
  const evil = "x'}] # {{ fail }}, {name: evil}";
  const injected = inject(pod({ annotations: { "sidecar.istio.io/logLevel": evil } }));
  assert.deepEqual(names(injected.spec.containers), ["app", "istio-proxy"]);
  const lines = 'x"\n  - name: evil';
  assert.throws(
    () => inject(pod({ annotations: { "sidecar.istio.io/logLevel": lines } })),
    /quotes or control characters/,
  );
  assert.ok(proxyOf(injected).args?.includes(`--proxyLogLevel=${evil}`));
});

test("OpenShift gives user and group of the proxy by the namespace", () => {
  const namespaceAnnotations = {
    "openshift.io/sa.scc.uid-range": "1000620000/10000",
    "openshift.io/sa.scc.supplemental-groups": "1000-1999,5000-5999",
  };
  const { runAsUser, runAsGroup } = proxyOf(inject(pod(), {}, { namespaceAnnotations })).securityContext ?? {};
  assert.deepEqual([runAsUser, runAsGroup], [1000629999, 1999]);
});
