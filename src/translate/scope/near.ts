/** What of a proxy's whereabouts decides which endpoints it gets, or gets first. */

import type { DestinationRule } from "#config/kinds/destination-rule/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { textOf } from "#model/proxy/node-metadata.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Service } from "#model/service/service.ts";
import { locatedLabels } from "#model/service/whereabouts.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { derived } from "../recipes/indexes.ts";
import { PREFERENCES } from "./traffic-policy.ts";

/** Labels by which some rule or service, or the mesh, orders endpoints. */
export function nearLabels(snapshot: Snapshot, proxy: MeshProxy, locality: string): readonly string[] {
  const ofMesh = snapshot.mesh.localityLbSetting.failoverPriority ?? [];
  const ofServices = wishesOf("", snapshot.services).labels;
  const names = new Set([...ofMesh, ...failoverLabels("", snapshot.destinationRules), ...ofServices]);
  const { CLUSTER_ID, NODE_NAME, NETWORK } = proxy.metadata;
  const labels = locatedLabels(proxy.labels, {
    clusterId: textOf(CLUSTER_ID),
    locality,
    nodeName: textOf(NODE_NAME),
    network: textOf(NETWORK),
  });
  return [...names].filter((name) => !name.includes("=")).map((name) => `${name}=${labels[name] ?? ""}`);
}

/** What services want to know of where their callers are: the same for most services, and so for most lists of them. */
export function wishesOfServices({ services }: Snapshot): readonly unknown[] {
  const { nodes, labels } = wishesOf("", services);
  return [nodes, ...labels];
}

const wishesOf = derived((_: string, services: readonly Service[]) => {
  const labels = services.flatMap(
    ({ trafficDistribution: wanted }) => (wanted && PREFERENCES[wanted].failoverPriority) ?? [],
  );
  return { nodes: services.some(({ nodeLocal }) => nodeLocal), labels: [...new Set(labels)] };
});

const failoverLabels = derived((_: string, rules: readonly ConfigObject<DestinationRule>[]) => {
  const policies = rules
    .flatMap(({ spec }) => [spec, ...(spec.subsets ?? [])])
    .map(({ trafficPolicy }) => trafficPolicy);
  const all = policies.flatMap((policy) => [policy, ...(policy?.portLevelSettings ?? [])]);
  return all.flatMap((policy) => policy?.loadBalancer?.localityLbSetting?.failoverPriority ?? []);
});

/** The machine the proxy runs on; empty where no service keeps to the caller's. */
export function nodeName({ services }: Snapshot, { metadata }: MeshProxy): string {
  return wishesOf("", services).nodes ? textOf(metadata.NODE_NAME) : "";
}
