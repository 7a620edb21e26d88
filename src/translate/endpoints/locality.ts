/** Which endpoints are taken first, by where the proxy is. */

import type { LocalityLb } from "#config/kinds/destination-rule/schema.ts";
import { compareText } from "#lib/text/compare-text.ts";
import type { Endpoint } from "#model/service/endpoint.ts";
import { effectivePolicy, failsOver, localitySettings, type Preference } from "../scope/traffic-policy.ts";
import type { EndpointsInput } from "./input.ts";

/** Endpoints in one place. */
export interface LocalityGroup {
  readonly locality: string;
  readonly endpoints: readonly Endpoint[];
  readonly weight: number;
  /** 0 is used first; the next only as far as the ones before it fail. */
  readonly priority?: number;
}

/** What decides which endpoints are near. */
export type NearInput = Pick<EndpointsInput, "rule" | "subset" | "locality" | "proxyLabels" | "mesh" | "port"> & {
  readonly service: Preference;
};

/**
 * Either traffic is distributed over localities by given shares, or, with outlier detection, far endpoints stand by for
 * near ones.
 */
export function preferNear(groups: readonly LocalityGroup[], input: NearInput): readonly LocalityGroup[] {
  const policy = effectivePolicy(input.rule?.spec, input.port.port, input.subset === "" ? undefined : input.subset);
  const settings = localitySettings(policy, input.mesh, input.service);
  if (settings?.distribute !== undefined) return distributed(groups, settings.distribute, input.locality);
  if (settings === undefined || !failsOver(policy, input.service)) return groups;
  const { failoverPriority = [], failover = [] } = settings;
  if (failoverPriority.length === 0) return failedOver(groups, failover, input.locality);
  const byLabels = input.proxyLabels ? byLabelPriority(groups, failoverPriority, input.proxyLabels) : groups;
  return failover.length === 0 ? byLabels : failedOver(byLabels, failover, input.locality);
}

function distributed(
  groups: readonly LocalityGroup[],
  shares: NonNullable<LocalityLb["distribute"]>,
  proxy: string,
): readonly LocalityGroup[] {
  const share = shares.find(({ from }) => covers(from ?? "", proxy));
  if (share === undefined) return groups;
  const weights = new Map<LocalityGroup, number>();
  for (const [locality, percent] of Object.entries(share.to ?? {}).sort(([a], [b]) => compareText(a, b))) {
    const matching = groups.filter((group) => !weights.has(group) && covers(locality, group.locality));
    const total = matching.reduce((sum, { weight }) => sum + weight, 0);
    for (const group of matching) weights.set(group, Math.ceil((group.weight * percent) / total));
  }
  return groups.map((group) => {
    const weight = weights.get(group);
    return weight === undefined ? { ...group, endpoints: [] } : { ...group, weight: weight || group.weight };
  });
}

/** `region/*`, `region/zone/*` and `*` stand for all that begins so. */
function covers(rule: string, locality: string): boolean {
  const [region = "", zone = "", subZone = ""] = rule.split("/");
  const [ownRegion = "", ownZone = "", ownSubZone = ""] = locality.split("/");
  const matches = (wanted: string, own: string) => wanted === "*" || wanted === "" || wanted === own;
  return (region === "*" || region === ownRegion) && matches(zone, ownZone) && matches(subZone, ownSubZone);
}

/** Same sub-zone, same zone, same region, then the region named for failing over, then the rest. */
function failedOver(
  groups: readonly LocalityGroup[],
  failover: NonNullable<LocalityLb["failover"]>,
  proxy: string,
): readonly LocalityGroup[] {
  const [region = "", zone = "", subZone = ""] = proxy.split("/");
  const target = failover.find(({ from }) => from === region)?.to;
  const distance = (locality: string) => {
    const [theirRegion = "", theirZone = "", theirSubZone = ""] = locality.split("/");
    if (theirRegion !== region) return target === undefined || theirRegion === target ? 3 : 4;
    if (theirZone !== zone) return 2;
    return theirSubZone === subZone ? 0 : 1;
  };
  return ranked(groups.map((group) => ({ ...group, priority: (group.priority ?? 0) * 5 + distance(group.locality) })));
}

/** The more of the labels, in order, an endpoint shares with the proxy, the nearer it is. */
function byLabelPriority(
  groups: readonly LocalityGroup[],
  wanted: readonly string[],
  proxyLabels: readonly string[],
): readonly LocalityGroup[] {
  const own = new Map(proxyLabels.map((label) => splitLabel(label)));
  const pairs = wanted.map((label): readonly [string, string | undefined] => {
    const [name, value] = splitLabel(label);
    return [name, label.includes("=") ? value : own.get(name)];
  });
  const priorityOf = ({ labels }: Endpoint) => {
    // A label that neither has is shared too.
    const different = pairs.findIndex(([name, value = ""]) => (labels[name] ?? "") !== value);
    return different === -1 ? 0 : pairs.length - different;
  };
  const split = groups.flatMap((group) => {
    const priorities = [...new Set(group.endpoints.map(priorityOf))].sort((a, b) => a - b);
    return priorities.map((priority) => {
      const endpoints = group.endpoints.filter((endpoint) => priorityOf(endpoint) === priority);
      return { ...group, endpoints, priority, weight: endpoints.reduce((sum, { weight }) => sum + (weight || 1), 0) };
    });
  });
  return ranked(split);
}

function splitLabel(label: string): readonly [string, string] {
  const at = label.indexOf("=");
  return at === -1 ? [label, ""] : [label.slice(0, at), label.slice(at + 1)];
}

/** Envoy wants priorities without gaps. */
function ranked(groups: readonly (LocalityGroup & { readonly priority: number })[]): readonly LocalityGroup[] {
  const used = [...new Set(groups.map(({ priority }) => priority))].sort((a, b) => a - b);
  return groups.map((group) => ({ ...group, priority: used.indexOf(group.priority) }));
}
