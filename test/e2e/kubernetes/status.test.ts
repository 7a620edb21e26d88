/** What the control plane writes about objects and workloads, on a real API server. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import { CLUSTER_TYPE } from "#protocol/messages/type-urls.ts";
import { TestControlPlane } from "../../support/control-plane.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";
import { proxyOf } from "../../support/mesh.ts";
import { nodeOf, XdsClient } from "../../support/xds-client.ts";

const INGRESS = `
apiVersion: v1
kind: Service
metadata: {name: istio-ingressgateway, namespace: istio-system}
spec: {type: LoadBalancer, ports: [{name: http, port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: istio}
spec: {controller: istio.io/ingress-controller}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ours}
spec: {ingressClassName: istio, defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: theirs}
spec: {ingressClassName: nginx, defaultBackend: {service: {name: web, port: {number: 80}}}}
`;
const GROUP = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: vm}
---
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: vms, namespace: default}
spec:
  metadata: {labels: {app: vm}}
  template: {serviceAccount: vm, ports: {http: 8080}}
`;

describe("status in Kubernetes", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  let server: ApiServer;
  let plane: TestControlPlane;
  before(async () => {
    server = await startApiServer({ controllers: true });
    await server.define(customResourceDefinitions());
    await server.kubectl(["create", "namespace", "istio-system"]);
    await server.apply(INGRESS);
    await server.apply(GROUP);
    const env = {
      PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: "500ms",
      POD_NAME: "istiod-1",
      PILOT_ENABLE_STATUS: "true",
      PILOT_ENABLE_ANALYSIS: "true",
      PILOT_ANALYSIS_INTERVAL: "1s",
    };
    plane = new TestControlPlane({ cluster: await server.api(), env });
    await plane.ready();
  });
  after(async () => {
    await plane?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  async function setBalancer(ingress: readonly object[]): Promise<void> {
    const patch = JSON.stringify({ status: { loadBalancer: { ingress } } });
    const service = ["-n", "istio-system", "patch", "service", "istio-ingressgateway"];
    await server.kubectl([...service, "--subresource=status", "--type=merge", "-p", patch]);
  }

  test("Ingresses of our class show where the gateway is reached, and follow it", async () => {
    const shown = async (name: string) =>
      server.kubectl(["get", "ingress", name, "-o", "jsonpath={.status.loadBalancer.ingress[*]['ip','hostname']}"]);
    await setBalancer([{ ip: "7.7.7.7" }]);
    await eventually("the address", async () => (await shown("ours")) === "7.7.7.7");
    await setBalancer([{ hostname: "lb.example.com" }]);
    await eventually("the name", async () => (await shown("ours")) === "lb.example.com");
    assert.equal(await shown("theirs"), "");
  });

  test("a workload that registers itself has an entry while it is there", async () => {
    const token = (await server.kubectl(["create", "token", "vm", "--audience=istio-ca"])).trim();
    const map = ["get", "configmap", "istio-ca-root-cert", "-o", "jsonpath={.data['root-cert\\.pem']}"];
    await eventually("the root", async () => (await server.kubectl(map).catch(() => "")) !== "");
    const metadata = { AUTO_REGISTER_GROUP: "vms" };
    const client = new XdsClient(await plane.address("secure gRPC discovery service"), {
      root: await server.kubectl(map),
      headers: { authorization: `Bearer ${token}` },
      node: nodeOf(proxyOf({ ip: "10.9.0.1", name: "vm-1", serviceAccount: "vm", metadata })),
    });
    client.request(CLUSTER_TYPE);
    await client.take(CLUSTER_TYPE);
    const entries = async () => server.kubectl(["get", "workloadentries", "-o", "jsonpath={.items[*].spec.address}"]);
    await eventually("the entry", async () => (await entries()) === "10.9.0.1");
    const owner = "jsonpath={.items[0].metadata.ownerReferences[0].kind}";
    assert.equal(await server.kubectl(["get", "workloadentries", "-o", owner]), "WorkloadGroup");
    client[Symbol.dispose]();
    await eventually("no entry", async () => (await entries()) === "");
  });

  test("objects say how many proxies have them, who refuses them, and that they are not valid", async () => {
    const entry = (more: object = {}) =>
      JSON.stringify({
        apiVersion: "networking.istio.io/v1",
        kind: "ServiceEntry",
        metadata: { name: "outside", namespace: "default" },
        spec: {
          hosts: ["outside.example.com"],
          ports: [{ number: 80, name: "http", protocol: "HTTP" }],
          resolution: "DNS",
          ...more,
        },
      });
    const rule = (policy: object) =>
      JSON.stringify({
        apiVersion: "networking.istio.io/v1",
        kind: "DestinationRule",
        metadata: { name: "outside", namespace: "default" },
        spec: { host: "outside.example.com", trafficPolicy: policy },
      });
    const conditions = async (kind: string) => {
      const path = "jsonpath={range .status.conditions[*]}{.type}={.status} {.message};{end}";
      return server.kubectl(["get", kind, "outside", "-o", path]);
    };
    using client = new XdsClient(await plane.address("gRPC discovery service"), {
      node: nodeOf(proxyOf({ ip: "10.9.0.9" })),
    });
    client.request(CLUSTER_TYPE);
    await client.take(CLUSTER_TYPE);
    await server.apply(entry());
    await client.take(CLUSTER_TYPE);
    const all = "Reconciled=True 1/1 proxies up to date.;";
    await eventually("distributed", async () => (await conditions("serviceentry")) === all);
    await server.apply(rule({ connectionPool: { tcp: { maxConnections: 7 } } }));
    const pushed = await client.next(CLUSTER_TYPE);
    const name = pushed.resources[0]?.name ?? "";
    client.reject(pushed, `Error adding/updating cluster(s) ${name}: it has too few connections`);
    await eventually("rejected", async () =>
      /Reconciled=False 0\/1 proxies up to date\.;Rejected=True 1\/1 proxies rejected it.*too few connections/.test(
        await conditions("destinationrule"),
      ),
    );
    await server.apply(entry({ addresses: ["no address"] }));
    await eventually("not valid", async () =>
      /^Reconciled=False not valid, the last good version holds: spec\.addresses/.test(
        await conditions("serviceentry"),
      ),
    );
  });

  test("a security object that cannot be read says what it denies", async () => {
    const policy = (port: string) =>
      JSON.stringify({
        apiVersion: "security.istio.io/v1",
        kind: "AuthorizationPolicy",
        metadata: { name: "broken", namespace: "default" },
        spec: { action: "DENY", rules: [{ to: [{ operation: { ports: [port] } }] }] },
      });
    const message = () =>
      server.kubectl(["get", "authorizationpolicy", "broken", "-o", "jsonpath={.status.conditions[*].message}"]);
    await server.apply(policy("70000"));
    await eventually("the denial", async () =>
      /^not valid: spec\.rules.*"70000"; cannot be read .*: it denies all traffic to all workloads of namespace default/.test(
        await message(),
      ),
    );
    await server.apply(policy("80"));
    await eventually("repaired", async () => /proxies up to date\.$/.test(await message()));
  });

  test("objects say what analysis finds, as long as it does, and who has what they claim", async () => {
    const routes = (name: string, host: string) =>
      JSON.stringify({
        apiVersion: "networking.istio.io/v1",
        kind: "VirtualService",
        metadata: { name, namespace: "default" },
        spec: { hosts: ["analysed"], http: [{ route: [{ destination: { host } }] }] },
      });
    const shown = (name: string, path: string) => server.kubectl(["get", "virtualservice", name, "-o", path]);
    const messages = (name: string) =>
      shown(name, "jsonpath={range .status.validationMessages[*]}{.type.code} {.level} {.documentationUrl};{end}");
    const message = (code: string) =>
      `${code} ERROR https://istio.io/v1.29/docs/reference/config/analysis/${code.toLowerCase()}/;`;
    await server.apply(routes("first", "kubernetes"));
    await server.apply(routes("second", "nowhere"));
    await eventually("both", async () => (await messages("second")) === message("IST0101") + message("IST0109"));
    await eventually("the other one", async () => (await messages("first")) === message("IST0109"));
    const conflict = "jsonpath={.status.conditions[?(@.type=='Conflicted')].message}";
    await eventually("the conflict", async () =>
      /host "analysed.* is taken by VirtualService\/default\/first: .*\d+ proxies/.test(
        await shown("second", conflict),
      ),
    );
    await server.kubectl(["delete", "virtualservice", "first"]);
    await eventually("one is gone", async () => (await messages("second")) === message("IST0101"));
    await server.apply(routes("second", "kubernetes"));
    await eventually("all are gone", async () => (await messages("second")) === "");
    await eventually("no conflict", async () => (await shown("second", conflict)) === "");
  });

  test("an entry that a lost control plane left goes", async () => {
    const left = {
      apiVersion: "networking.istio.io/v1",
      kind: "WorkloadEntry",
      metadata: {
        name: "left",
        namespace: "default",
        annotations: {
          "istio.io/autoRegistrationGroup": "vms",
          "istio.io/workloadController": "istiod-0",
          "istio.io/disconnectedAt": "2020-01-01T00:00:00Z",
        },
      },
      spec: { address: "10.9.0.2" },
    };
    await server.apply(JSON.stringify(left));
    const names = () => server.kubectl(["get", "workloadentries", "-o", "name"]);
    await eventually("it goes", async () => !(await names()).includes("left"));
  });
});
