import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import { createLogger } from "#lib/log/log.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import type { Source } from "#model/ports.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../../test/support/kubernetes/api-server.ts";
import { fileSource } from "../file/file-source.ts";
import { problemsOf, type SourceUnderTest, servicesOf, serviceYaml, testSource, until } from "../source-contract.ts";
import { type FilesInstead, type KubernetesSource, kubernetesSource } from "./kubernetes-source.ts";

interface OpenedSource extends AsyncDisposable {
  readonly source: KubernetesSource;
  readonly log: string[];
}

/** A running source; its first snapshot is there. */
async function openSource(server: ApiServer, files?: FilesInstead, revision = "default"): Promise<OpenedSource> {
  const log: string[] = [];
  const source = kubernetesSource({
    api: await server.api(),
    features: DEFAULT_FEATURES,
    log: createLogger({ write: (line) => log.push(line) }),
    revision,
    meshConfigMap: { namespace: "istio-system", name: "istio" },
    files,
  });
  const aborting = new AbortController();
  const first = new Promise<void>((resolve) => {
    source.subscribe(() => resolve());
  });
  const running = source.run(aborting.signal);
  await Promise.race([first, running]);
  const dispose = async () => {
    aborting.abort();
    await running;
  };
  return { source, log, [Symbol.asyncDispose]: dispose };
}

/** The API server has a service, a ConfigMap and namespaces of its own. */
function withoutOwn(source: KubernetesSource): Source {
  return {
    current: () => source.current(),
    problems: () => source.problems(),
    subscribe: (listener) => source.subscribe(listener),
    objects: () =>
      source.objects().filter(({ kind, metadata }) => kind === "Service" && metadata.name !== "kubernetes"),
  };
}

function definitionOf(plural: string): string {
  const definitions = customResourceDefinitions().map((definition) => JSON.stringify(definition));
  return definitions.filter((text) => text.includes(`"name":"${plural}.`)).join("\n---\n");
}

function meshYaml(mesh: string): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\ndata:\n  mesh: ${JSON.stringify(mesh)}\n`;
}

describe("kubernetesSource()", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  let server: ApiServer;
  before(async () => {
    server = await startApiServer();
    await server.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: istio-system}\n");
    await server.apply(meshYaml("{}"));
  });
  after(() => server?.[Symbol.asyncDispose]());

  testSource("kubernetes source", openContract);

  /** "Files" are applied and deleted by kubectl. */
  async function openContract(files: Readonly<Record<string, string>>): Promise<SourceUnderTest> {
    const texts = new Map<string, string>();
    const write: SourceUnderTest["write"] = async (changes) => {
      for (const [name, text] of Object.entries(changes)) {
        const before = texts.get(name);
        if (text !== undefined) await server.apply(text);
        else if (before !== undefined) await server.kubectl(["delete", "-f", "-"], before);
        if (text !== undefined) texts.set(name, text);
      }
    };
    await write(files);
    const { source, [Symbol.asyncDispose]: close } = await openSource(server);
    const dispose = async () => {
      await close();
      for (const text of texts.values()) await server.kubectl(["delete", "--ignore-not-found", "-f", "-"], text);
    };
    return { source: withoutOwn(source), write, [Symbol.asyncDispose]: dispose };
  }

  test("the ConfigMap of the mesh is the mesh config, live", async () => {
    await using opened = await openSource(server);
    assert.deepEqual(opened.log, [], "nothing is missed that was only not read yet");
    const logFile = () => opened.source.current().mesh.accessLogFile;
    await server.apply(meshYaml("accessLogFile: /one"));
    await until(() => logFile() === "/one");
    await server.apply(meshYaml("accessLogFile: [/two]"));
    await until(() => problemsOf(opened).length > 0);
    assert.match(
      problemsOf(opened)[0] ?? "",
      /^ConfigMap\/istio-system\/istio:1: MeshConfig: accessLogFile must be text/,
    );
    assert.equal(logFile(), "/one");
  });

  test("a pod that failed, as evicted ones do, is no longer there", async () => {
    await server.apply(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: evicted, namespace: default}\nspec: {containers: [{name: a, image: a}]}\n",
    );
    await using opened = await openSource(server);
    const pods = () => opened.source.objects().filter(({ kind }) => kind === "Pod").length;
    await until(() => pods() === 1);
    const failed = JSON.stringify({ status: { phase: "Failed" } });
    await server.kubectl(["patch", "pod", "evicted", "--subresource=status", "--type=merge", "-p", failed]);
    await until(() => pods() === 0);
  });

  test("networks of the ConfigMap are those of the mesh", async () => {
    await using opened = await openSource(server);
    const networks = "networks: {net7: {endpoints: [{fromRegistry: Kubernetes}]}}";
    const data = { mesh: "{}", meshNetworks: networks };
    const metadata = { name: "istio", namespace: "istio-system" };
    await server.apply(JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata, data }));
    await until(() => Object.keys(opened.source.current().mesh.networks ?? {}).join() === "net7");
    await server.apply(meshYaml("{}"));
  });

  test("Services of any revision are the mesh's, configuration is of one", async () => {
    await using opened = await openSource(server);
    await server.apply(
      serviceYaml("canary").replace("  name: canary", "  name: canary\n  labels: {istio.io/rev: canary}"),
    );
    await until(() => servicesOf(opened).includes("canary:80"));
    const route = { hosts: ["a"], http: [{ route: [{ destination: { host: "a" } }] }] };
    const metadata = { name: "canary", namespace: "default", labels: { "istio.io/rev": "canary" } };
    const kind = { apiVersion: "networking.istio.io/v1", kind: "VirtualService" };
    await server.apply(definitionOf("virtualservices"));
    await server.kubectl(["wait", "--for=condition=Established", "--timeout=120s", "crd", "--all"]);
    await server.apply(JSON.stringify({ ...kind, metadata, spec: route }));
    const count = ({ source }: OpenedSource) => source.current().virtualServices.length;
    await using all = await openSource(server, undefined, "");
    await until(() => count(all) === 1);
    await using canary = await openSource(server, undefined, "canary");
    await until(() => count(canary) === 1);
    await using other = await openSource(server, undefined, "default");
    assert.equal(count(other), 0);
    await server.kubectl(["delete", "virtualservice", "canary"]);
  });

  test("files take the place of configuration and mesh config, services stay those of the cluster", async () => {
    const folder = mkdtempSync(join(tmpdir(), "kubernetes-files-"));
    try {
      const [config, mesh] = [join(folder, "config.yaml"), join(folder, "mesh.yaml")];
      const entry = (host: string) =>
        `apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: e, namespace: default}\nspec: {hosts: [${host}], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}\n---\n`;
      writeFileSync(config, entry("one.example.com") + serviceYaml("from-file"));
      writeFileSync(mesh, "accessLogFile: /file\n");
      const log = createLogger({ write: () => {} });
      const source = fileSource({ folders: [folder], meshConfigFile: mesh, features: DEFAULT_FEATURES, log });
      await server.apply(serviceYaml("from-cluster"));
      await using opened = await openSource(server, { source, ofConfiguration: true, ofMesh: true });
      const hosts = () => opened.source.current().services.map(({ hostname }) => hostname.split(".")[0]);
      assert.equal(opened.source.current().mesh.accessLogFile, "/file");
      assert.ok(hosts().includes("one") && hosts().includes("from-cluster") && !hosts().includes("from-file"));
      writeFileSync(config, entry("two.example.com"));
      await until(() => hosts().includes("two"));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("a server that restarts costs nothing, and what changed meanwhile is seen", async () => {
    await using opened = await openSource(server);
    await server.apply(serviceYaml("kept"));
    await until(() => servicesOf(opened).includes("kept:80"));
    const seen: string[] = [];
    opened.source.subscribe(() => seen.push(servicesOf(opened).join()));
    await server.stop("kube-apiserver");
    await until(() => opened.source.problems().length > 0);
    assert.ok(servicesOf(opened).includes("kept:80"));
    await server.start();
    await server.apply(serviceYaml("later"));
    await until(() => servicesOf(opened).includes("later:80"));
    assert.ok(seen.every((services) => services.includes("kept:80")));
  });
});
