/** Pages about the configuration in effect, in Istio's shape. */

import { authorizationPolicyKind } from "#config/kinds/authorization-policy/kind.ts";
import { configMapKind } from "#config/kinds/config-map/kind.ts";
import { destinationRuleKind } from "#config/kinds/destination-rule/kind.ts";
import { envoyFilterKind } from "#config/kinds/envoy-filter/kind.ts";
import { gatewayKind } from "#config/kinds/gateway/kind.ts";
import { resourceTypeOf } from "#config/kinds/kind.ts";
import { peerAuthenticationKind } from "#config/kinds/peer-authentication/kind.ts";
import { requestAuthenticationKind } from "#config/kinds/request-authentication/kind.ts";
import { secretKind } from "#config/kinds/secret/kind.ts";
import { serviceKind } from "#config/kinds/service/kind.ts";
import { serviceEntryKind } from "#config/kinds/service-entry/kind.ts";
import { sidecarKind } from "#config/kinds/sidecar/kind.ts";
import { virtualServiceKind } from "#config/kinds/virtual-service/kind.ts";
import { workloadEntryKind } from "#config/kinds/workload-entry/kind.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { type Conflict, conflictText } from "#explain/conflicts/conflict.ts";
import { apiForm } from "./api-form.ts";
import { type DebugState, PageRefusal, type PageRequest } from "./page.ts";
import { inScope } from "./scope.ts";

/** The mesh config in effect, without what has the value that a message of its kind begins with. */
export function mesh({ source }: DebugState): object {
  const config = source.current().mesh;
  const shown = Object.entries({ ...Object(apiForm(config)), inboundTrafficPolicy: inboundPolicy(config) });
  return Object.fromEntries(shown.filter(([name, value]) => !PLAIN.has(name) || !isZero(value)));
}

/** Fields of which nobody can tell whether they were set. */
const PLAIN: ReadonlySet<string> = new Set([
  "accessLogEncoding",
  "accessLogFile",
  "accessLogFormat",
  "enableEnvoyAccessLogService",
  "enableTracing",
  "trustDomainAliases",
]);

function isZero(value: unknown): boolean {
  return value === "" || value === false || value === "TEXT" || (Array.isArray(value) && value.length === 0);
}

function inboundPolicy({ inboundTrafficPolicy }: MeshConfig): object {
  return inboundTrafficPolicy?.mode === "PASSTHROUGH" ? {} : { ...inboundTrafficPolicy };
}

/** Our own cluster, and those that Secrets have brought in. */
export function clusterz({ source, remoteClusters }: DebugState, { scope }: PageRequest): readonly object[] {
  if (remoteClusters === undefined) throw new PageRefusal(400, "There is no Kubernetes");
  const own = { id: source.current().features.clusterId, secretName: "", syncStatus: "synced" };
  const others = scope === undefined ? remoteClusters() : [];
  return [own, ...others.map(({ id, secret, status }) => ({ id, secretName: secret, syncStatus: status }))];
}

/** Authorization policies by namespace. */
export function authorizationz({ source }: DebugState, { scope }: PageRequest): object {
  const { authorizationPolicies, mesh: config } = source.current();
  const visible = authorizationPolicies.filter(({ metadata }) => inScope(scope, metadata.namespace));
  return {
    authorization_policies: {
      namespace_to_policies: Object.fromEntries(
        [...Map.groupBy(visible, ({ metadata }) => metadata.namespace)].map(([namespace, policies]) => [
          namespace,
          policies.map(policyOf),
        ]),
      ),
      root_namespace: config.rootNamespace,
    },
  };
}

function policyOf({ metadata, spec }: ConfigObject): object {
  const { name, namespace, annotations } = metadata;
  return {
    name,
    namespace,
    annotations: Object.keys(annotations).length > 0 ? annotations : null,
    spec: apiForm(spec),
  };
}

/** What pushes are made of. */
export function pushContext(state: DebugState, request: PageRequest): object {
  const { authorization_policies } = Object(authorizationz(state, request));
  return { AuthorizationPolicies: authorization_policies, NetworkGateways: networkz(state), UnresolvedGateways: null };
}

/** Gateways between networks; null when there are none, as Go shows an empty list. */
export function networkz({ source }: Pick<DebugState, "source">): readonly object[] | null {
  const { networkGateways } = source.current();
  if (networkGateways.length === 0) return null;
  return networkGateways.map(({ network, clusterId, address, port }) => ({
    Network: network,
    Cluster: clusterId,
    Addr: address,
    Port: port,
    HBONEPort: 0,
    ServiceAccount: { Namespace: "", Name: "" },
  }));
}

/** Conflicts by the metric that counts them, then by the object that lost; beyond the root namespace only of objects of one's own. */
export function pushStatus({ conflicts }: DebugState, { scope }: PageRequest): object {
  const visible = (conflicts?.() ?? []).filter(({ loserNamespace }) => inScope(scope, loserNamespace));
  const byLoser = (found: readonly Conflict[]) =>
    Object.fromEntries(
      [...Map.groupBy(found, ({ loser }) => loser)].map(([loser, all]) => [
        loser,
        { message: all.map(conflictText).join("; ") },
      ]),
    );
  const byMetric = Map.groupBy(visible, ({ metric }) => metric);
  return Object.fromEntries([...byMetric].map(([metric, found]) => [metric, byLoser(found)]));
}

/** Kinds of objects that are in effect. */
export function resourcesz(): readonly object[] {
  return WATCHED.map((known) => {
    const { group, version, kind } = resourceTypeOf(known);
    return { group, version, kind };
  });
}

const WATCHED = [
  authorizationPolicyKind,
  configMapKind,
  destinationRuleKind,
  envoyFilterKind,
  gatewayKind,
  peerAuthenticationKind,
  requestAuthenticationKind,
  secretKind,
  serviceKind,
  serviceEntryKind,
  sidecarKind,
  virtualServiceKind,
  workloadEntryKind,
];
