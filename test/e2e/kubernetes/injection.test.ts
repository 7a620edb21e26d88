/** Pods and objects of Istio, created by kubectl on a real API server that asks our webhooks. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Command } from "commander";
import { ControlPlane } from "#control-plane/control-plane.ts";
import { flagDefaults, parseDiscoveryConfig } from "#control-plane/settings/config.ts";
import { addFlags, flagsOf } from "#control-plane/settings/flags.ts";
import { DEFAULT_VALUES } from "#inject/injector/default-values.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { createLogger } from "#lib/log/log.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";
import { webhookConfigurations } from "../../support/kubernetes/webhook-configurations.ts";

const LISTENERS = ["httpAddr", "httpsAddr", "grpcAddr", "secureGRPCAddr", "monitoringAddr"];
const PLACES = `
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Namespace
metadata: {name: plain}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sidecars.networking.istio.io}
spec:
  group: networking.istio.io
  names: {kind: Sidecar, plural: sidecars}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`;

interface InjectedPod {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly containers: readonly { readonly name: string }[];
    readonly initContainers?: readonly { readonly name: string; readonly restartPolicy?: string }[];
  };
}

describe("webhooks on a real API server", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-injection-"));
  const stopping = new AbortController();
  const lines: string[] = [];
  let server: ApiServer;
  let running: Promise<void>;

  before(async () => {
    server = await startApiServer();
    await server.apply(PLACES);
    const free = LISTENERS.map((name) => `--${name}=127.0.0.1:0`);
    const defaults = flagDefaults({});
    const command = new Command();
    addFlags(command, defaults);
    command.parse(["--kubeconfig", server.kubeConfig, "--ctrlz_port=0", "--shutdownDuration=1s", ...free], {
      from: "user",
    });
    const env = { ROOT_CA_DIR: join(folder, "ca"), CLUSTER_ID: "c1" };
    const { config, problems } = parseDiscoveryConfig(flagsOf(command, defaults), env);
    assert.deepEqual(problems, []);
    const log = createLogger({ write: (line) => lines.push(line) });
    running = new ControlPlane(config, log, await server.api()).run(stopping.signal);
    const at = () => lines.map((line) => /starting webhook service at (\S+)/.exec(line)?.[1]).find(Boolean);
    await Promise.race([running, eventually("webhooks are served", async () => at() !== undefined)]);
    const { injection, validation } = await webhookConfigurations();
    for (const [webhooks, path] of [
      [injection, "/inject/cluster/c1"],
      [validation, "/validate"],
    ] as const)
      for (const webhook of webhooks) await server.apply(JSON.stringify(reachedBy(webhook, `https://${at()}${path}`)));
    const bundles = [
      "get",
      "mutatingwebhookconfigurations",
      "-o",
      "jsonpath={.items[*].webhooks[*].clientConfig.caBundle}",
    ];
    await eventually("the webhooks have our root", async () => (await server.kubectl(bundles)) !== "");
  });
  after(async () => {
    stopping.abort();
    await running;
    await server[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  async function createPod(namespace: string, pod: object): Promise<InjectedPod> {
    const created = await server.kubectl(["-n", namespace, "create", "-o", "json", "-f", "-"], JSON.stringify(pod));
    return JSON.parse(created) as InjectedPod;
  }

  function podNamed(name: string, metadata: object = {}, spec: object = {}): object {
    const containers = [{ name: "app", image: "app:1", readinessProbe: { httpGet: { port: 8080 } } }];
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, ...metadata },
      spec: { serviceAccountName: "default", containers, ...spec },
    };
  }

  /** What the API server lets in once it knows the webhook; the configuration reaches it a moment after it was written. */
  async function injectedPod(name: string): Promise<InjectedPod> {
    let pod: InjectedPod | undefined;
    let tries = 0;
    await eventually("pods are injected", async () => {
      pod = await createPod("shop", podNamed(`${name}-${++tries}`)).catch(() => undefined);
      return pod?.spec.containers.length === 2 || pod?.spec.initContainers !== undefined;
    });
    return pod ?? assert.fail("no pod");
  }

  test("a pod in a labelled namespace is stored with its proxy", async () => {
    const { spec, metadata } = await injectedPod("web");
    assert.deepEqual(
      spec.containers.map(({ name }) => name),
      ["app"],
      "without nodes all of them run native sidecars",
    );
    assert.deepEqual(
      spec.initContainers?.map(({ name }) => name),
      ["istio-init", "istio-proxy"],
    );
    assert.match(metadata.annotations?.["sidecar.istio.io/status"] ?? "", /"revision":"default"/);
  });

  test("pods elsewhere, and those that refuse, are stored as they are", async () => {
    const plain = await createPod("plain", podNamed("a"));
    const refused = await createPod("shop", podNamed("b", { labels: { "sidecar.istio.io/inject": "false" } }));
    for (const { spec } of [plain, refused]) assert.equal(spec.initContainers, undefined);
    const asked = await createPod("plain", podNamed("c", { labels: { "sidecar.istio.io/inject": "true" } }));
    assert.equal(asked.spec.initContainers?.length, 2);
  });

  test("gateways and agents of gRPC applications are pods that the API server takes", async () => {
    const templates = (name: string) => ({ annotations: { "inject.istio.io/templates": name } });
    const containers = [{ name: "istio-proxy", image: "auto" }];
    const gateway = await createPod("shop", podNamed("gateway", templates("gateway"), { containers }));
    assert.deepEqual(
      gateway.spec.containers.map(({ name }) => name),
      ["istio-proxy"],
    );
    const agent = await createPod("shop", podNamed("grpc", templates("grpc-agent")));
    assert.deepEqual(
      agent.spec.containers.map(({ name }) => name),
      ["app", "istio-proxy"],
    );
    await createPod("shop", podNamed("simple", templates("grpc-simple")));
  });

  test("a pod that cannot be injected is refused with the reason", async () => {
    const wrong = podNamed("wrong", { annotations: { "traffic.sidecar.istio.io/excludeInboundPorts": "many" } });
    await assert.rejects(createPod("shop", wrong), /excludeInboundPorts invalid/);
  });

  test("settings of the ConfigMap hold as soon as they are written, and old nodes are seen", async () => {
    const template = 'metadata: {labels: {injected: {{ printf "%t-%s" .NativeSidecars .Values.global.hub }}}}';
    const config = JSON.stringify({ policy: "enabled", templates: { sidecar: template } });
    const values = JSON.stringify({ ...DEFAULT_VALUES, global: { ...DEFAULT_VALUES.global, hub: "mine" } });
    const map = { metadata: { name: "istio-sidecar-injector", namespace: "istio-system" }, data: { config, values } };
    await server.apply(JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", ...map }));
    let tries = 0;
    const label = async () => {
      const pod = await createPod("shop", podNamed(`settings-${++tries}`));
      return (pod.metadata as { labels?: Readonly<Record<string, string>> }).labels?.injected;
    };
    await eventually("the template is taken", async () => (await label()) === "true-mine");
    await server.apply("{apiVersion: v1, kind: Node, metadata: {name: old}}");
    const status = JSON.stringify({ status: { nodeInfo: { kubeletVersion: "v1.28.0" } } });
    await server.kubectl(["patch", "node", "old", "--subresource=status", "--type=merge", "-p", status]);
    await eventually("the node is seen", async () => (await label()) === "false-mine");
  });

  test("objects of Istio that are wrong are not stored", async () => {
    const sidecar = (name: string, spec: object) => {
      const metadata = { name, namespace: "shop", labels: { "istio.io/rev": "default" } };
      return JSON.stringify({ apiVersion: "networking.istio.io/v1", kind: "Sidecar", metadata, spec });
    };
    await server.apply(sidecar("good", { egress: [{ hosts: ["./*"] }] }));
    const wrong = sidecar("wrong", { egress: [{ hosts: ["x"] }] });
    await eventually("validation is on", async () =>
      server.kubectl(["create", "--dry-run=server", "-f", "-"], wrong).then(
        () => false,
        (problem: unknown) => /configuration is invalid/.test(String(isRecord(problem) ? problem.stderr : problem)),
      ),
    );
  });
});

/** The webhooks at an address instead of a service, which nothing here forwards to. */
function reachedBy(configuration: object, url: string): object {
  const webhooks = "webhooks" in configuration && Array.isArray(configuration.webhooks) ? configuration.webhooks : [];
  return { ...configuration, webhooks: webhooks.map((webhook: object) => ({ ...webhook, clientConfig: { url } })) };
}
