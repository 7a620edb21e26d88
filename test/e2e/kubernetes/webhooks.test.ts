/** Pods and configuration that come through a real API server, which asks our webhooks. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { loadAll } from "js-yaml";
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import { injectDocuments } from "#inject/inject-documents.ts";
import { DEFAULT_VALUES } from "#inject/injector/default-values.ts";
import { injectorFrom } from "#inject/injector/inject-settings.ts";
import { TestControlPlane } from "../../support/control-plane.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";
import { webhookConfigurations } from "../../support/kubernetes/webhook-configurations.ts";

const DEPLOYMENT = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, version: v1}}
    spec:
      containers:
      - name: web
        image: web:1
        ports: [{containerPort: 8080, protocol: TCP}]
        readinessProbe: {httpGet: {path: /ready, port: 8080, scheme: HTTP}, timeoutSeconds: 1}
`;
const pod = (name: string, namespace = "shop") =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace },
    spec: { containers: [{ name: "app", image: "app:1" }] },
  });
const configMap = (name: string, data: Readonly<Record<string, string>>) =>
  JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "istio-system" }, data });
const route = (destination: object) =>
  JSON.stringify({
    apiVersion: "networking.istio.io/v1",
    kind: "VirtualService",
    // Validation looks at objects of its revision.
    metadata: { name: "web", namespace: "shop", labels: { "istio.io/rev": "default" } },
    spec: { hosts: ["web"], http: [{ route: [{ destination }] }] },
  });

interface Container {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly readinessProbe?: unknown;
}
interface Pod {
  readonly metadata: { readonly annotations: Readonly<Record<string, string>>; readonly labels: object };
  readonly spec: { readonly containers: readonly Container[]; readonly initContainers: readonly Container[] };
}

describe("webhooks of a real API server", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  let server: ApiServer;
  let plane: TestControlPlane;
  before(async () => {
    server = await startApiServer({ controllers: true });
    await server.define(customResourceDefinitions());
    for (const name of ["istio-system", "shop", "outside"]) await server.kubectl(["create", "namespace", name]);
    await server.kubectl(["label", "namespace", "shop", "istio-injection=enabled"]);
    await server.apply(configMap("istio", { mesh: "trustDomain: td1\n" }));
    // Certificates of the control plane name no address, but hosts that it is told of.
    const env = { ISTIOD_CUSTOM_HOST: "localhost" };
    plane = new TestControlPlane({ cluster: await server.api(), flags: ["--httpsAddr=127.0.0.1:0"], env });
    await plane.ready();
    const port = (await plane.address("webhook service")).split(":").at(-1);
    const { injection, validation } = await webhookConfigurations();
    for (const object of [...injection, ...validation]) {
      await server.apply(JSON.stringify(byAddress(object, `https://localhost:${port}`)));
    }
    await eventually("the roots are in", async () => {
      const found = await server.kubectl(["get", "mutatingwebhookconfigurations", "-o", "json"]);
      return found.includes("caBundle");
    });
    // What is written reaches those who ask the webhooks a moment later.
    const tried = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    await eventually("pods are injected", async () =>
      (await server.kubectl(tried, pod("tried")).catch(() => "")).includes("istio-proxy"),
    );
  });
  after(async () => {
    await plane?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  async function created(name: string): Promise<Pod> {
    await server.kubectl(["create", "-f", "-"], pod(name));
    return JSON.parse(await server.kubectl(["-n", "shop", "get", "pod", name, "-o", "json"]));
  }

  test("a Deployment's pod has what kube-inject puts into the Deployment", async () => {
    await server.apply(DEPLOYMENT);
    const list = ["-n", "shop", "get", "pods", "-l", "app=web", "-o", "json"];
    let found: Pod | undefined;
    await eventually("its pod", async () => {
      found = JSON.parse(await server.kubectl(list)).items[0];
      return found !== undefined;
    });
    const injector = injectorFrom({ meshConfig: "trustDomain: td1\n", revision: "" });
    const { text } = injectDocuments(DEPLOYMENT.trimStart(), { injector, nativeSidecars: true });
    const expected = (loadAll(text)[0] as { spec: { template: Pod } }).spec.template;
    assert.ok(found);
    assert.deepEqual(partsOf(found), partsOf(expected));
    assert.equal(found.metadata.annotations["sidecar.istio.io/status"] !== undefined, true);
  });

  test("settings and mesh config of ConfigMaps hold for the next pod", async () => {
    const envOf = ({ spec }: Pod, name: string) =>
      [...spec.containers, ...spec.initContainers]
        .find((container) => container.name === "istio-proxy")
        ?.env?.find((variable) => variable.name === name)?.value;
    let count = 0;
    const next = () => created(`live-${count++}`);
    assert.equal(envOf(await next(), "TRUST_DOMAIN"), "td1");
    await server.apply(configMap("istio", { mesh: "trustDomain: td2\n" }));
    await eventually("the new mesh config", async () => envOf(await next(), "TRUST_DOMAIN") === "td2");
    const { global } = DEFAULT_VALUES;
    const proxy = { ...global.proxy, clusterDomain: "example.local" };
    const values = JSON.stringify({ ...DEFAULT_VALUES, global: { ...global, proxy } });
    await server.apply(configMap("istio-sidecar-injector", { values }));
    const args = async () => JSON.stringify((await next()).spec);
    await eventually("the new values", async () => (await args()).includes("svc.example.local"));
    await server.apply(configMap("istio-sidecar-injector", { values: "{broken" }));
    const wrong = /injection settings are wrong: the last good ones stay/;
    await eventually("the complaint", async () => {
      assert.match(await args(), /svc\.example\.local/);
      return plane.lines.some((line) => wrong.test(line));
    });
  });

  test("pods that ask for nothing are left alone", async () => {
    await server.kubectl(["create", "-f", "-"], pod("plain", "outside"));
    const plain = await server.kubectl(["-n", "outside", "get", "pod", "plain", "-o", "json"]);
    assert.ok(!plain.includes("istio-proxy"));
  });

  test("kubectl is refused what could not work, with our words", async () => {
    const bad = route({ host: "web", port: { number: 70_000 } });
    await eventually("validation is on", async () => {
      // A second one that were stored would be no change, which nobody is asked about.
      const result = await server.kubectl(["create", "--dry-run=server", "-f", "-"], bad).then(
        () => "accepted",
        (problem: Error & { stderr?: string }) => problem.stderr ?? problem.message,
      );
      return /denied the request: configuration is invalid: spec\.http\[0\]/.test(result);
    });
    await server.kubectl(["apply", "-f", "-"], route({ host: "web", port: { number: 80 } }));
    await eventually("nothing is stored without validation", async () => {
      const policies = "jsonpath={.items[*].webhooks[*].failurePolicy}";
      const found = await server.kubectl(["get", "validatingwebhookconfigurations", "-o", policies]);
      return found.split(" ").every((policy) => policy === "Fail");
    });
  });

  test("a control plane that is gone holds up only what it would inject", async () => {
    await plane.stop();
    await server.kubectl(["create", "-f", "-"], pod("anyway", "outside"));
    await server.kubectl(["create", "-f", "-"], pod("itself", "istio-system"));
    await assert.rejects(server.kubectl(["create", "-f", "-"], pod("held-up")), /failed calling webhook/);
  });
});

/** Services lead nowhere here. */
function byAddress(object: object, address: string): object {
  const { webhooks, ...rest } = object as { webhooks: { clientConfig: { service: { path: string } } }[] };
  return {
    ...rest,
    webhooks: webhooks.map((webhook) => ({
      ...webhook,
      clientConfig: { url: address + webhook.clientConfig.service.path },
    })),
  };
}

/** What injection decides, apart from what the API server adds to every pod. */
function partsOf({ metadata, spec }: Pod): object {
  const containers = (list: readonly Container[]) =>
    list.map(({ name, image, args, env }) => ({
      name,
      image,
      args,
      env: env?.map(({ name, value }) => [name, value]),
    }));
  const { "sidecar.istio.io/status": _, ...annotations } = metadata.annotations;
  return {
    annotations,
    containers: containers(spec.containers),
    initContainers: containers(spec.initContainers),
  };
}
