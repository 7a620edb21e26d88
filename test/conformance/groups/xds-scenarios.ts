/**
 * Clusters with configuration to the resources of their proxies. Every recorded resource is a case, and for each kind one
 * more: that there are no others.
 */
import { glob } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import type { Proxy as MeshProxy } from "#model/proxy.ts";
import { compareJson } from "../compare.ts";
import { type Generated, generate } from "../generate.ts";
import { type Case, type Group, type Outcome, readJson } from "../harness.ts";
import { type KubernetesObject, kubernetesMesh } from "../kubernetes-mesh.ts";
import { formatResource, messageType, parseResource, RESOURCE_TYPES, throughBytes, withoutType } from "../resources.ts";

interface Scenario {
  readonly name: string;
  readonly input: {
    readonly kubernetes: string;
    readonly configs: readonly KubernetesObject[];
    readonly meshConfigYAML: string;
  };
  readonly proxies: Readonly<Record<string, RecordedProxy>>;
}

interface RecordedProxy {
  readonly node: NodeDump;
  /** Files of resources by kind. */
  readonly recorded: Readonly<Record<string, string>>;
}

interface NodeDump {
  readonly type: MeshProxy["type"];
  readonly id: string;
  readonly ipAddresses: readonly string[];
  readonly configNamespace: string;
  readonly dnsDomain: string;
  readonly labels?: Readonly<Record<string, string>> | null;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Filters of Istio's own build of Envoy, for which everything was recorded. */
const ISTIO_EXTENSIONS = [
  "envoy.filters.http.peer_metadata",
  "envoy.filters.network.metadata_exchange",
  "istio.alpn",
  "istio.stats",
];

export const xdsScenarios: Group = {
  name: "xds scenarios",
  cases: async (folder) => {
    const at = join(folder, "pilot/xds-golden/scenarios");
    const cases: Case[] = [];
    for await (const file of glob("*.json", { cwd: at })) {
      const scenario = await readJson<Scenario>(at, file);
      if (scenario !== undefined) cases.push(...(await scenarioCases(at, scenario)));
    }
    return cases;
  },
};

async function scenarioCases(at: string, scenario: Scenario): Promise<readonly Case[]> {
  const kubernetes = (await readJson<readonly KubernetesObject[]>(at, scenario.input.kubernetes)) ?? [];
  const mesh = once(() =>
    kubernetesMesh({
      objects: [...kubernetes, ...scenario.input.configs],
      meshConfigYaml: scenario.input.meshConfigYAML,
    }),
  );
  const cases: Case[] = [];
  for (const [name, { node, recorded }] of Object.entries(scenario.proxies)) {
    const generated = once(() => {
      const snapshot = mesh();
      return "leftOut" in snapshot ? snapshot : generate(snapshot, proxyOf(node));
    });
    for (const [kind, file] of Object.entries(recorded)) {
      const resources = ((await readJson<readonly unknown[]>(at, file)) ?? []).map(withoutType);
      cases.push(...kindCases({ prefix: `${scenario.name} ${name} ${kind}`, kind, resources, generated }));
    }
  }
  return cases;
}

interface KindInput {
  readonly prefix: string;
  readonly kind: string;
  readonly resources: readonly unknown[];
  readonly generated: () => Generated | { readonly leftOut: string };
}

function kindCases({ prefix, kind, resources, generated }: KindInput): readonly Case[] {
  const named = resources.map((json) => [nameOf(json), json] as const);
  const check = (compare: (generated: Generated) => Outcome) => () => {
    const ours = generated();
    return "leftOut" in ours ? ours : compare(ours);
  };
  return [
    ...named.map(([name, json]) => ({
      name: `${prefix} ${name}`,
      check: check((ours) => compareOne(ours, kind, { name, json })),
    })),
    {
      name: `${prefix} has no others`,
      check: check((ours) => {
        const names = namesOf(ours, kind);
        const known = new Set(named.map(([name]) => name));
        return compareJson(names?.filter((name) => !known.has(name)) ?? [], []);
      }),
    },
  ];
}

function compareOne(generated: Generated, kind: string, { name, json }: { name: string; json: unknown }): Outcome {
  const type = messageType(RESOURCE_TYPES[kind] ?? kind);
  const bytes = kind === "endpoints" ? generated.endpointsOf(name) : resourcesOf(generated, kind)?.get(name);
  if (bytes === undefined) return { differs: () => `- ${name}` };
  return compareJson(formatResource(type, fromBinary(type, bytes)), throughBytes(type, parseResource(type, json)));
}

/** Endpoints are only made for clusters that are asked for, so there are never others. */
function namesOf(generated: Generated, kind: string): readonly string[] | undefined {
  const names = resourcesOf(generated, kind)?.keys();
  return names === undefined ? undefined : [...names];
}

function resourcesOf(generated: Generated, kind: string) {
  if (kind === "clusters" || kind === "listeners" || kind === "routes") return generated[kind];
  // There is one table of names, and it has no name.
  if (kind === "nameTables") return new Map([...generated.nameTables.values()].map((table) => ["", table]));
  return undefined;
}

function nameOf(json: unknown): string {
  const { name = "", clusterName = name } = json as { readonly name?: string; readonly clusterName?: string };
  return clusterName;
}

function proxyOf(node: NodeDump): MeshProxy {
  const { type, id, ipAddresses, dnsDomain, metadata } = node;
  return {
    nodeId: [type, ipAddresses[0], id, dnsDomain].join("~"),
    type,
    addresses: ipAddresses,
    id,
    namespace: node.configNamespace,
    dnsDomain,
    labels: node.labels ?? {},
    serviceAccount: String(metadata.SERVICE_ACCOUNT ?? ""),
    metadata,
    envoyVersion: "",
    extensions: new Set(ISTIO_EXTENSIONS),
  };
}

/** Computed when first needed; what it threw is thrown each time. */
function once<T>(compute: () => T): () => T {
  let result: { readonly value: T } | { readonly thrown: unknown } | undefined;
  return () => {
    if (result === undefined) {
      try {
        result = { value: compute() };
      } catch (thrown) {
        result = { thrown };
      }
    }
    if ("thrown" in result) throw result.thrown;
    return result.value;
  };
}
