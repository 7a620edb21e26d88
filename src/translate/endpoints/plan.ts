/** Recipes of endpoints. */
import { NO_ENDPOINTS } from "#model/service/endpoint.ts";
import { connectedPort, type Service, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { parseClusterName } from "../names/names.ts";
import { policiesOf } from "../policies/peer-authentication.ts";
import { type Recipe, recipe } from "../recipes/recipe.ts";
import { isClusterLocal } from "../scope/cluster-local.ts";
import { destinationRuleFor } from "../scope/destination-rules.ts";
import { servicesInScope } from "../scope/egress.ts";
import { effectivePolicy, prefersNear } from "../scope/traffic-policy.ts";
import { endpointLabels } from "../traits/switches.ts";
import type { EndpointsView } from "../views/views.ts";
import { assignment } from "./assignment.ts";

/**
 * The assignment of an outbound cluster that the proxy has by EDS; undefined for others. So one that is about to go keeps
 * the endpoints that it has until nothing leads to it any more: endpoints go before routes.
 */
export function planEndpoints(
  snapshot: Snapshot,
  view: EndpointsView,
  cluster: string,
  isFound: (service: Service, view: EndpointsView) => boolean = isFoundByItself,
): Recipe | undefined {
  const name = parseClusterName(cluster);
  if (name?.direction !== "outbound") return undefined;
  const service = servicesInScope(snapshot, view).byHost.get(name.hostname);
  const port = service && connectedPort(service, name.port);
  if (service === undefined || port === undefined || isFound(service, view)) return undefined;
  const { mesh } = snapshot;
  const { subset } = name;
  const rule = destinationRuleFor(snapshot, service, view);
  if (subset !== "" && !rule?.spec.subsets?.some((each) => each.name === subset)) return undefined;
  const policy = effectivePolicy(rule?.spec, port.port, subset === "" ? undefined : subset);
  const isNear = prefersNear(policy, mesh, service);
  const input = {
    cluster,
    service,
    port,
    subset,
    rule,
    endpoints: snapshot.endpoints.get(serviceKey(service)) ?? NO_ENDPOINTS,
    peerPolicies: policiesOf(snapshot, service.namespace),
    locality: isNear ? view.locality : "",
    proxyLabels: isNear ? view.proxyLabels : [],
    onlyMtls: name.isServerName,
    ...(service.nodeLocal && { onlyNode: view.nodeName }),
    ...((service.nodeLocal || isClusterLocal(snapshot, service)) && { onlyCluster: view.clusterId }),
    mesh,
    network: view.network,
    networkView: view.networkView,
    networkGateways: snapshot.networkGateways,
    labels: endpointLabels(snapshot.features),
    ...(snapshot.features.dualStack && { allAddresses: true }),
  };
  return recipe({ name: cluster, input, build: assignment });
}

/** By DNS, or by the address that was called. */
function isFoundByItself(service: Service, { role }: EndpointsView): boolean {
  if (service.resolution === "passthrough") return service.registry === "External" && role === "sidecar";
  return isFoundByDns(service);
}

/** Whether an Envoy looks the name of the service up. */
export function isFoundByDns({ resolution }: Service): boolean {
  return resolution === "dns" || resolution === "dns-round-robin";
}
