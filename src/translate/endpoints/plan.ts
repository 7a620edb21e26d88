/** Recipes of endpoints. */
import { NO_ENDPOINTS } from "#model/endpoint.ts";
import { serviceKey } from "#model/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { parseClusterName } from "../names.ts";
import { type Recipe, recipe } from "../recipe.ts";
import { isClusterLocal } from "../scope/cluster-local.ts";
import { destinationRuleFor } from "../scope/destination-rules.ts";
import { servicesInScope } from "../scope/egress.ts";
import { policiesOf } from "../scope/peer-authentication.ts";
import { effectivePolicy, prefersNear } from "../scope/traffic-policy.ts";
import { endpointLabels } from "../switches.ts";
import type { EndpointsView } from "../views.ts";
import { assignment, emptyAssignment } from "./assignment.ts";

/** The assignment of an outbound cluster; an empty one for services and ports that do not exist, undefined for the rest. */
export function planEndpoints(snapshot: Snapshot, view: EndpointsView, cluster: string): Recipe | undefined {
  const name = parseClusterName(cluster);
  if (name?.direction !== "outbound") return undefined;
  const service = servicesInScope(snapshot, view).byHost.get(name.hostname);
  const port = service?.ports.find((each) => each.port === name.port);
  if (service === undefined || port === undefined) return emptyRecipe(cluster);
  if (service.resolution === "dns" || service.resolution === "dns-round-robin") return emptyRecipe(cluster);
  const { mesh } = snapshot;
  const { subset } = name;
  const rule = destinationRuleFor(snapshot, service, view);
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
  };
  return recipe({ name: cluster, input, build: assignment });
}

function emptyRecipe(cluster: string): Recipe {
  return recipe({ name: cluster, input: { cluster }, build: emptyAssignment });
}
