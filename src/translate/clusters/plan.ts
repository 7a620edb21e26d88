/** Recipes of the clusters towards services. */

import type { DestinationRule } from "#config/kinds/destination-rule/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { ITEMS_PER_STEP, type Steps } from "#lib/async/steps.ts";
import { inTrustDomains } from "#model/identity/trust-domain.ts";
import { type EndpointSet, endpointPort, NO_ENDPOINTS } from "#model/service/endpoint.ts";
import { type Service, type ServicePort, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { hasEndpoints } from "../endpoints/assignment.ts";
import {
  BLACK_HOLE_CLUSTER,
  outboundCluster as outboundClusterName,
  outboundServerName,
  PASSTHROUGH_CLUSTER,
} from "../names/names.ts";
import { type MtlsMode, namespaceMode, policiesOf } from "../policies/peer-authentication.ts";
import { derived, kept, keptSteps } from "../recipes/indexes.ts";
import { type Recipe, recipe } from "../recipes/recipe.ts";
import { endpointsIn } from "../scope/cluster-local.ts";
import { destinationRuleFor } from "../scope/destination-rules.ts";
import { servicesInScope } from "../scope/egress.ts";
import { referencedServices } from "../scope/referenced-services.ts";
import { effectivePolicy, prefersNear } from "../scope/traffic-policy.ts";
import { CREDENTIAL_CLUSTER } from "../tls/secrets.ts";
import type { OutboundView } from "../views/views.ts";
import { blackHoleCluster, credentialCluster, passthroughCluster } from "./fixed.ts";
import { discoveryOf, dnsEndpointsInput, outboundCluster } from "./outbound.ts";

/** Clusters of all services in view, and those for unknown destinations. They outlive changes of routes. */
export function* planOutboundClusters(snapshot: Snapshot, view: OutboundView): Steps<readonly Recipe[]> {
  const { mesh, features, endpoints, destinationRules, peerAuthentications } = snapshot;
  const routes = view.clustersOf === undefined ? [] : [snapshot.virtualServices, snapshot.requestAuthentications];
  const from = [mesh, features, endpoints, destinationRules, peerAuthentications, view.traits.cluster, ...routes];
  const { list } = servicesInScope(snapshot, view);
  return yield* keptSteps(list, { key: `clusters ${view.key}`, from }, () => outboundClusters(snapshot, view));
}

function* outboundClusters(snapshot: Snapshot, view: OutboundView): Steps<readonly Recipe[]> {
  const clusters = new Map<string, Recipe>();
  const add = (made: Recipe) => {
    if (!clusters.has(made.name)) clusters.set(made.name, made);
  };
  const input = { traits: view.traits.cluster, mesh: snapshot.mesh };
  const key = `clusters ${placeKey(view)}`;
  let count = 0;
  for (const service of referencedServices(snapshot, view, servicesInScope(snapshot, view).list)) {
    if (count++ % ITEMS_PER_STEP === 0) yield;
    if (service.resolution === "alias" || service.resolution === "dynamic-dns") continue;
    for (const made of serviceClusters(snapshot, view, { service, key })) add(made);
  }
  if (view.passesByServerName) for (const made of passedClusters(snapshot, view)) add(made);
  add(recipe({ name: BLACK_HOLE_CLUSTER, input, build: blackHoleCluster }));
  if (input.traits.credentialSocket) add(recipe({ name: CREDENTIAL_CLUSTER, input, build: credentialCluster }));
  if (view.role === "sidecar") add(recipe({ name: PASSTHROUGH_CLUSTER, input, build: passthroughCluster }));
  return [...clusters.values()];
}

/** What the clusters of a service depend on beside objects. */
function placeKey({ locality, clusterId, networkView = "", traits }: OutboundView): string {
  return `${locality} ${clusterId} ${networkView} ${JSON.stringify(traits.cluster)}`;
}

/** All clusters of a service. Those of services that did not change are the recipes of before. */
function serviceClusters(
  snapshot: Snapshot,
  view: OutboundView,
  { service, key, isPassed = false }: { readonly service: Service; readonly key: string; readonly isPassed?: boolean },
): readonly Recipe[] {
  const rule = destinationRuleFor(snapshot, service, view);
  const known = snapshot.endpoints.get(serviceKey(service)) ?? NO_ENDPOINTS;
  const endpoints = endpointsIn(view.clusterId, snapshot, { service, endpoints: known });
  const policies = policiesOf(snapshot, service.namespace);
  const ruled = rule === undefined ? key : `${key} ${objectKey(rule)}`;
  return kept(service, ruled, [endpoints, rule, policies, view.traits.cluster, snapshot.mesh], () => {
    const subsets = ["", ...(rule?.spec.subsets ?? []).map(({ name }) => name)];
    const ports = service.ports.filter(({ protocol }) => protocol !== "UDP");
    return ports.flatMap((port) =>
      subsets.flatMap(
        (subset) => serviceCluster(snapshot, view, { service, port, rule, subset, endpoints, isPassed }) ?? [],
      ),
    );
  });
}

/** Clusters to which TLS is passed on by its server name, which is their name. They are for services of the mesh only. */
function passedClusters(snapshot: Snapshot, view: OutboundView): readonly Recipe[] {
  const key = `passed ${placeKey(view)}`;
  const services = servicesInScope(snapshot, view).list.filter((service) => !service.meshExternal);
  return services.flatMap((service) => serviceClusters(snapshot, view, { service, key, isPassed: true }));
}

interface ClusterOf {
  readonly service: Service;
  readonly port: ServicePort;
  readonly rule: ConfigObject<DestinationRule> | undefined;
  readonly subset: string;
  readonly endpoints: EndpointSet;
  readonly isPassed: boolean;
}

/** A DNS cluster without endpoints is none: Envoy refuses it. */
function serviceCluster(snapshot: Snapshot, view: OutboundView, of: ClusterOf): Recipe | undefined {
  const { service, port, rule, subset, endpoints, isPassed } = of;
  const { mesh } = snapshot;
  const traits = view.traits.cluster;
  const policy = effectivePolicy(rule?.spec, port.port, subset === "" ? undefined : subset);
  const discovery = discoveryOf({ service, port, subset, rule, traits });
  const isDns = discovery === "strict-dns" || discovery === "logical-dns";
  const name = (isPassed ? outboundServerName : outboundClusterName)(service.hostname, port.port, subset);
  const input = {
    name,
    service,
    port,
    subset,
    rule,
    identities: serverIdentities(service, endpoints, mesh),
    mtls: mtlsOf(snapshot, of),
    isPassed,
    dnsEndpoints: isDns ? endpoints : undefined,
    peerPolicies: isDns ? policiesOf(snapshot, service.namespace) : undefined,
    locality: isDns && prefersNear(policy, mesh, service) ? view.locality : "",
    ...(isDns && view.networkView !== undefined && { networkView: view.networkView }),
    traits,
    mesh,
  };
  if (isDns && !hasEndpoints(dnsEndpointsInput(input, endpoints))) return undefined;
  return recipe({ name, input, build: outboundCluster });
}

/** Where connections go to the address that was called, all endpoints have to agree: they cannot be told apart. */
function mtlsOf(snapshot: Snapshot, { service, port, rule, subset, endpoints }: ClusterOf): MtlsMode {
  const spec = rule?.spec;
  const ofSubset = spec?.subsets?.find(({ name }) => name === subset)?.trafficPolicy;
  const balancer = (subset === "" ? spec?.trafficPolicy : ofSubset)?.loadBalancer;
  if (service.resolution === "passthrough" || balancer?.simple === "PASSTHROUGH") {
    const instances = endpoints.endpoints.filter((endpoint) => endpointPort(endpoint, port) !== undefined);
    if (instances.length === 0 || instances.some(({ tlsMode }) => tlsMode === "disabled")) return "DISABLE";
  }
  return namespaceMode(snapshot, service.namespace);
}

/** SPIFFE ids of the endpoints and names the user gave, in all trust domains that count as ours. */
export function serverIdentities(service: Service, { identities }: EndpointSet, mesh: MeshConfig): readonly string[] {
  if (service.subjectAltNames.length === 0 && mesh.trustDomainAliases.length === 0) return identities;
  return expandedIdentities("", service, identities, mesh);
}

const expandedIdentities = derived((_: string, service: Service, identities: readonly string[], mesh: MeshConfig) =>
  inTrustDomains([...identities, ...service.subjectAltNames], mesh.trustDomainAliases),
);
