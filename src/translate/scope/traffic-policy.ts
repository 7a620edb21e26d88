/** Which settings of a destination rule apply to a port and subset. */
import type {
  DestinationRule,
  LocalityLb,
  PortTrafficPolicy,
  TrafficPolicy,
} from "#config/kinds/destination-rule/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import {
  HOSTNAME_LABEL,
  NETWORK_LABEL,
  REGION_LABEL,
  SUBZONE_LABEL,
  ZONE_LABEL,
} from "#config/terms/topology-labels.ts";
import type { Service } from "#model/service/service.ts";

/** The settings of one cluster; what is not set has its default. */
export type EffectivePolicy = Omit<TrafficPolicy, "portLevelSettings">;

/**
 * A port's settings replace those of the rule as a whole. A subset's settings replace those of the rule one by one, or as a
 * whole where the subset has settings for the port.
 */
export function effectivePolicy(rule: DestinationRule | undefined, port: number, subset?: string): EffectivePolicy {
  const ofRule = policyOfPort(rule?.trafficPolicy, port);
  const subsetPolicy = rule?.subsets?.find(({ name }) => name === subset)?.trafficPolicy;
  if (subset === undefined || subsetPolicy === undefined) return ofRule ?? {};
  const ofSubset = policyOfPort(subsetPolicy, port) ?? {};
  if (ofRule === undefined) return ofSubset;
  const replaced = portSettings(subsetPolicy, port) === undefined ? setFields(ofSubset) : { ...UNSET, ...ofSubset };
  return { ...ofRule, ...replaced };
}

/** Settings that a port can have; those of a port replace all of them. */
const UNSET: PortTrafficPolicy = {
  connectionPool: undefined,
  outlierDetection: undefined,
  loadBalancer: undefined,
  tls: undefined,
};

function policyOfPort(policy: TrafficPolicy | undefined, port: number): EffectivePolicy | undefined {
  if (policy === undefined) return undefined;
  const { portLevelSettings: _, ...ofAllPorts } = policy;
  const ofPort = portSettings(policy, port);
  if (ofPort === undefined) return ofAllPorts;
  const { port: __, ...settings } = ofPort;
  return settings;
}

function portSettings(policy: TrafficPolicy, port: number): PortTrafficPolicy | undefined {
  return policy.portLevelSettings?.find((settings) => settings.port?.number === port);
}

function setFields<T extends object>(value: T): Partial<T> {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as Partial<T>;
}

/** What a service itself says about its endpoints. */
export type Preference = Pick<Service, "trafficDistribution">;

const SAME_ZONE = [NETWORK_LABEL, REGION_LABEL, ZONE_LABEL];

/** Labels that an endpoint shares with a proxy to be near it, the most important first. */
export const PREFERENCES: Readonly<Record<NonNullable<Preference["trafficDistribution"]>, LocalityLb>> = {
  "same-zone": { enabled: true, failoverPriority: SAME_ZONE },
  "same-node": {
    enabled: true,
    failoverPriority: [...SAME_ZONE, SUBZONE_LABEL, HOSTNAME_LABEL],
  },
};

/** The locality settings in effect: those of the rule, else what the service prefers, else of the mesh; none when off. */
export function localitySettings(
  policy: EffectivePolicy,
  mesh: MeshConfig,
  { trafficDistribution }: Preference,
): LocalityLb | undefined {
  const preferred = trafficDistribution && PREFERENCES[trafficDistribution];
  const settings = policy.loadBalancer?.localityLbSetting ?? preferred ?? mesh.localityLbSetting;
  return settings.enabled === false ? undefined : settings;
}

/**
 * Whether far endpoints stand by for near ones. That needs outlier detection, else Envoy never sees that those failed;
 * services that prefer near ones tell which are not ready.
 */
export function failsOver(policy: EffectivePolicy, { trafficDistribution }: Preference): boolean {
  const isPreferred = trafficDistribution !== undefined && policy.loadBalancer?.localityLbSetting === undefined;
  return policy.outlierDetection !== undefined || isPreferred;
}

/** Whether endpoints are ordered by distance, so that they depend on where the proxy is. */
export function prefersNear(policy: EffectivePolicy, mesh: MeshConfig, service: Preference): boolean {
  const settings = localitySettings(policy, mesh, service);
  return settings !== undefined && (settings.distribute !== undefined || failsOver(policy, service));
}
