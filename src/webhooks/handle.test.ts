import assert from "node:assert/strict";
import { test } from "node:test";
import { testInjector } from "#inject/injector/fixture.ts";
import { InjectionError } from "#inject/injector/injection-error.ts";
import { applyPatch, type Operation } from "../../test/support/json-patch.ts";
import { handleWebhook, type WebhookContext } from "./handle.ts";
import { admitPod } from "./injection.ts";

interface Answer {
  readonly apiVersion?: string;
  readonly response: {
    readonly uid: string;
    readonly allowed: boolean;
    readonly patch?: string;
    readonly patchType?: string;
    readonly warnings?: readonly string[];
    readonly status?: { readonly message: string };
  };
}

const POD = {
  metadata: { generateName: "web-" },
  spec: { containers: [{ name: "web", image: "web:1", resources: {} }] },
};
const VIRTUAL_SERVICE = {
  apiVersion: "networking.istio.io/v1",
  kind: "VirtualService",
  metadata: { name: "v", namespace: "ns" },
  spec: { hosts: ["a.com"], http: [{ route: [{ destination: { host: "a.com" } }] }] },
};

function webhook(overrides: Partial<WebhookContext> = {}) {
  const counted: string[] = [];
  const context: WebhookContext = {
    injection: () => ({ injector: testInjector(), proxyConfigs: [], nativeSidecars: () => false }),
    count: (name, labels = {}) => void counted.push([name, ...Object.values(labels)].join(" ")),
    log: () => {},
    ...overrides,
  };
  const send = (path: string, body: string, contentType = "application/json") =>
    handleWebhook({ path, contentType, body }, context);
  const ask = (path: string, request: object, version = "v1"): Answer => {
    const review = {
      kind: "AdmissionReview",
      apiVersion: `admission.k8s.io/${version}`,
      request: { uid: "u1", ...request },
    };
    const { status, body } = send(path, JSON.stringify(review));
    assert.equal(status, 200);
    return JSON.parse(body) as Answer;
  };
  return { counted, send, ask };
}

test("without injection there is no page for it, and validation goes on", () => {
  const { send, ask } = webhook({ injection: undefined });
  assert.equal(send("/inject", "{}").status, 404);
  assert.equal(send("/inject/cluster/a", "{}").status, 404);
  assert.equal(ask("/validate", { operation: "DELETE" }).response.allowed, true);
});

function patched(
  answer: Answer,
  object: object,
): { spec: { containers: { name: string; env?: { name: string; value?: string }[] }[] } } {
  const operations = JSON.parse(Buffer.from(answer.response.patch ?? "", "base64").toString()) as Operation[];
  return applyPatch(object, operations) as ReturnType<typeof patched>;
}

for (const version of ["v1", "v1beta1"]) {
  test(`a pod in a review of ${version} is answered with a patch that puts the proxy in`, () => {
    const { ask, counted } = webhook();
    const answer = ask("/inject", { namespace: "ns", operation: "CREATE", object: POD }, version);
    assert.equal(answer.apiVersion, `admission.k8s.io/${version}`);
    assert.deepEqual(
      [answer.response.uid, answer.response.allowed, answer.response.patchType],
      ["u1", true, "JSONPatch"],
    );
    assert.deepEqual(
      patched(answer, POD).spec.containers.map(({ name }) => name),
      ["web", "istio-proxy"],
    );
    assert.deepEqual(counted, ["sidecar_injection_requests_total", "sidecar_injection_success_total"]);
  });
}

test("the path names cluster and network of the pod", () => {
  const { ask } = webhook();
  const pod = patched(ask("/inject/cluster/c1/net/n--slash--1/extra/x", { namespace: "ns", object: POD }), POD);
  const env = pod.spec.containers[1]?.env ?? [];
  const value = (name: string) => env.find((one) => one.name === name)?.value;
  assert.deepEqual([value("ISTIO_META_CLUSTER_ID"), value("ISTIO_META_NETWORK"), value("EXTRA")], ["c1", "n/1", "x"]);
});

test("a pod that is to get no proxy is let through unchanged", () => {
  const { ask, counted } = webhook();
  const answer = ask("/inject", { namespace: "kube-system", object: POD });
  assert.deepEqual(answer.response, { uid: "u1", allowed: true });
  assert.deepEqual(counted.at(-1), "sidecar_injection_skip_total");
});

test("ProxyConfig objects count in the order mesh, namespace, workload", () => {
  const placed = (namespace: string, concurrency: number, selector?: object) => ({
    namespace,
    spec: { concurrency, environmentVariables: { [`FROM_${concurrency}`]: "x" }, ...(selector && { selector }) },
  });
  const own = placed("ns", 3, { matchLabels: { app: "a" } });
  const proxyConfigs = [placed("istio-system", 1), placed("ns", 2), own, placed("other", 9)];
  const { ask } = webhook({
    injection: () => ({ injector: testInjector(), proxyConfigs, nativeSidecars: () => false }),
  });
  const pod = { ...POD, metadata: { labels: { app: "a" } } };
  const env = patched(ask("/inject", { namespace: "ns", object: pod }), pod).spec.containers[1]?.env ?? [];
  const config: unknown = JSON.parse(env.find(({ name }) => name === "PROXY_CONFIG")?.value ?? "");
  assert.deepEqual(config, { concurrency: 3, proxyMetadata: { FROM_1: "x", FROM_2: "x", FROM_3: "x" } });
});

test("a pod that cannot be injected is refused with the reason", () => {
  const { ask, counted } = webhook();
  const refused = (object: unknown, message: RegExp) => {
    const { response } = ask("/inject", { namespace: "ns", object });
    assert.equal(response.allowed, false);
    assert.match(response.status?.message ?? "", message);
    assert.equal(counted.at(-1), "sidecar_injection_failure_total");
  };
  const annotated = (annotations: object) => ({ ...POD, metadata: { annotations } });
  refused(annotated({ "inject.istio.io/templates": "none" }), /requested template "none" not found/);
  refused(annotated({ "traffic.sidecar.istio.io/excludeInboundPorts": "x" }), /excludeInboundPorts invalid/);
  refused("a pod", /must be an object/);
  const unready = webhook({
    injection: () => {
      throw new InjectionError("values must be an object");
    },
  });
  assert.match(unready.ask("/inject", { object: POD }).response.status?.message ?? "", /values must be an object/);
  refused({ spec: { containers: [{ name: 1 }] } }, /spec\.containers\[0\]\.name must be text/);
});

test("what is no review is refused, and never ends the server", () => {
  const { send, counted } = webhook();
  const refused = (body: string, message: RegExp) => {
    for (const path of ["/inject", "/validate"]) {
      const { status, body: answer } = send(path, body);
      const { response } = JSON.parse(answer) as Answer;
      assert.deepEqual([status, response.allowed], [200, false]);
      assert.match(response.status?.message ?? "", message);
    }
  };
  refused("\0\x01\x02", /could not decode body/);
  refused("[]", /not an object/);
  refused("{}", /unsupported type/);
  refused('{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v2"}', /unsupported type/);
  refused('{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}', /no request/);
  refused("[".repeat(100_000), /nested deeper/);
  const many = JSON.stringify({
    kind: "AdmissionReview",
    apiVersion: "admission.k8s.io/v1",
    request: { uid: "u", operation: "CREATE", object: { ...VIRTUAL_SERVICE, status: Array(100_000).fill(1) } },
  });
  refused(many, /more than 60000 values/);
  refused(`{"a": "[[[["`, /could not decode body/);
  assert.deepEqual([send("/inject", "").status, send("/inject", "{}", "text/plain").status], [400, 415]);
  assert.deepEqual([send("/validate", "").status, send("/nothing", "{}").status], [400, 404]);
  assert.ok(counted.includes("galley_validation_http_error 400"));
});

test("objects of Istio are checked when they are created or changed", () => {
  const { ask, counted } = webhook();
  const kind = { group: "networking.istio.io", version: "v1", kind: "VirtualService" };
  const check = (object: unknown, request: object = {}) =>
    ask("/validate", {
      operation: "CREATE",
      namespace: "ns",
      kind,
      resource: { resource: "virtualservices" },
      object,
      ...request,
    }).response;
  assert.deepEqual(check(VIRTUAL_SERVICE), { uid: "u1", allowed: true });
  assert.equal(counted.at(-1), "galley_validation_passed networking.istio.io v1 virtualservices");
  const broken = { ...VIRTUAL_SERVICE, spec: { hosts: [], http: [] } };
  assert.match(check(broken).status?.message ?? "", /^configuration is invalid: spec needs http/);
  assert.equal(counted.at(-1), "galley_validation_failed networking.istio.io v1 virtualservices invalid_resource");
  assert.match(check(broken, { dryRun: true }).status?.message ?? "", /\(dry run\)$/);
  assert.equal(check(broken, { operation: "DELETE" }).allowed, true);
  assert.match(check({ ...VIRTUAL_SERVICE, extra: 1 }).status?.message ?? "", /unknown field "extra"/);
  assert.match(check({ apiVersion: "v1", kind: "Secret" }).status?.message ?? "", /unrecognized type v1, Kind=Secret/);
  assert.match(check(undefined).status?.message ?? "", /cannot decode configuration/);
  const warned = check({ ...VIRTUAL_SERVICE, spec: { ...VIRTUAL_SERVICE.spec, unknownField: 1 } });
  assert.match(warned.warnings?.join() ?? "", /spec\.unknownField/);
  const newer = { ...VIRTUAL_SERVICE, apiVersion: "networking.istio.io/v9" };
  assert.deepEqual(check(newer), { uid: "u1", allowed: true });
  assert.match(check({ ...broken, apiVersion: newer.apiVersion }).status?.message ?? "", /spec needs http/);
  const strange = { ...VIRTUAL_SERVICE, kind: "Strange" };
  assert.match(check(strange).status?.message ?? "", /unrecognized type networking.istio.io.v1, Kind=Strange/);
  const later = { apiVersion: "telemetry.istio.io/v1", kind: "Telemetry", metadata: { name: "t" }, spec: {} };
  assert.deepEqual(check(later).warnings, ["Telemetry has no effect yet"]);
});

test("native sidecars are a matter of the cluster that the path names", () => {
  const seen: string[] = [];
  const nativeSidecars = (_: string | undefined, cluster: string) => {
    seen.push(cluster);
    return cluster === "own";
  };
  const pod = { metadata: { name: "p" }, spec: { containers: [{ name: "a", image: "a" }] } };
  const kind = { group: "", version: "v1", kind: "Pod" };
  const request = { uid: "", operation: "CREATE", namespace: "ns", kind, resource: "pods", object: pod, dryRun: false };
  const isNative = (path: string) => {
    const lookUp = () => ({ injector: testInjector(), proxyConfigs: [], nativeSidecars });
    return JSON.stringify(admitPod(request, path, lookUp).verdict).includes('"restartPolicy":"Always"');
  };
  assert.deepEqual(["/inject", "/inject/cluster/own", "/inject/cluster/far/net/n"].map(isNative), [false, true, false]);
  assert.deepEqual(seen, ["Kubernetes", "own", "far"]);
});

test("__proto__ in a review is a plain key: nothing inherits from it", () => {
  const { send } = webhook();
  const object = `{"__proto__": {"hosts": ["x"]}, ${JSON.stringify(VIRTUAL_SERVICE).slice(1)}`;
  const request = `{"uid": "u", "operation": "CREATE", "__proto__": {"dryRun": true}, "object": ${object}}`;
  const review = `{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "__proto__": {"polluted": 1}, "request": ${request}}`;
  for (const path of ["/validate", "/inject"]) assert.equal(send(path, review).status, 200);
  assert.equal(Reflect.get({}, "polluted"), undefined);
  assert.equal(Reflect.get({}, "hosts"), undefined);
  assert.match(send("/validate", review).body, /unknown field \\"__proto__\\"/);
});

test("labels of metrics are those of kinds that exist, whatever a review says", () => {
  const { counted, ask } = webhook();
  const kind = { group: "networking.istio.io", version: "v1", kind: "VirtualService" };
  for (const resource of ["virtualservices", "made-up", "x".repeat(100_000)]) {
    ask("/validate", { operation: "DELETE", kind, resource: { resource } });
  }
  ask("/validate", { operation: "DELETE", kind: { ...kind, kind: "Made" }, resource: { resource: "mades" } });
  const labels = new Set(counted.map((line) => line.split(" ").slice(1).join(" ")));
  assert.equal(labels.size, 2, [...labels].join("\n"));
});
