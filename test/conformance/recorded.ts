/** Resources that real Istio sent to a proxy, as cases. */
import { fromBinary } from "@bufbuild/protobuf";
import { ISTIO_EXTENSIONS } from "#cli/translate/simulated-proxy.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import { compareJson } from "./compare.ts";
import type { Generated } from "./generate.ts";
import type { Case, Outcome } from "./harness.ts";
import { formatResource, messageType, parseResource, RESOURCE_TYPES, throughBytes } from "./resources.ts";

/** A proxy as the data dumps it. */
export interface NodeDump {
  readonly type: MeshProxy["type"];
  readonly id?: string;
  readonly ipAddresses: readonly string[];
  readonly configNamespace: string;
  readonly dnsDomain: string;
  readonly labels?: Readonly<Record<string, string>> | null;
  readonly locality?: { readonly region?: string; readonly zone?: string; readonly subZone?: string } | null;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** The recorded resources of one kind. */
export interface KindInput {
  readonly prefix: string;
  readonly kind: string;
  readonly resources: readonly unknown[];
  readonly generated: () => Generated | { readonly leftOut: string };
}

/** A case for each resource, and one more: that there are no others. */
export function kindCases({ prefix, kind, resources, generated }: KindInput): readonly Case[] {
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

/** The proxy that everything was recorded for; `home` is where its services are. */
export function recordedProxy(node: NodeDump, home?: string): MeshProxy {
  const { type, id = "", ipAddresses, dnsDomain, metadata } = node;
  const { region = "", zone = "", subZone = "" } = node.locality ?? {};
  return {
    nodeId: [type, ipAddresses[0], id, dnsDomain].join("~"),
    type,
    addresses: ipAddresses,
    id,
    namespace: node.configNamespace,
    dnsDomain,
    labels: node.labels ?? {},
    locality: [region, zone, subZone].join("/").replace(/\/+$/, ""),
    serviceAccount: String(metadata.SERVICE_ACCOUNT ?? ""),
    // Tests of Istio give a proxy its labels without asking registries for more.
    metadata: { ...metadata, STATIC_LABELS: node.labels ?? {}, ...(home !== undefined && { NAMESPACE: home }) },
    envoyVersion: "",
    extensions: new Set(ISTIO_EXTENSIONS),
  };
}

/** Computed when first needed; what it threw is thrown each time. */
export function once<T>(compute: () => T): () => T {
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
