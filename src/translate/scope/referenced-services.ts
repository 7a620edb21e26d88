/** The services that a router may have to reach, where it is not to know all others (PILOT_FILTER_GATEWAY_CLUSTER_CONFIG). */

import type { VirtualService } from "#config/kinds/virtual-service/schema.ts";
import type { ExtensionProvider } from "#config/mesh/extension-provider.ts";
import { completeHost } from "#config/terms/host.ts";
import type { Service } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { derived } from "../recipes/indexes.ts";
import { type BoundVirtualService, boundTo } from "./virtual-services.ts";

/** Those of the list that routes of its Gateways, providers of the mesh or keys of token issuers lead to. */
export function referencedServices(
  snapshot: Snapshot,
  view: { readonly clustersOf?: readonly string[] },
  services: readonly Service[],
): readonly Service[] {
  if (view.clustersOf === undefined) return services;
  const hosts = new Set([
    ...view.clustersOf.flatMap((gateway) => destinationsOf(snapshot, gateway)),
    ...(snapshot.mesh.extensionProviders ?? []).flatMap(providerService),
    ...issuerHosts(snapshot),
  ]);
  return services.filter(({ hostname, namespace }) => hosts.has(hostname) || hosts.has(`${namespace}/${hostname}`));
}

/** Whoever may see the routes, as for istiod. */
function destinationsOf(snapshot: Snapshot, gateway: string): readonly string[] {
  return boundTo(snapshot, gateway).flatMap((virtualService) => referencedHosts("", virtualService));
}

/** The hosts of all destinations of a virtual service, whoever may be led there. */
export const referencedHosts = derived((_: string, { object, domain }: BoundVirtualService): readonly string[] => {
  const { spec, metadata } = object;
  return [...new Set(destinationHosts(spec).map((host) => completeHost(host, metadata.namespace, domain)))];
});

/** Hosts of all routes, mirrors among them. */
function destinationHosts({ http = [], tls = [], tcp = [] }: VirtualService): readonly string[] {
  const byHttp = http.flatMap(({ route = [], mirror, mirrors = [] }) => [
    ...route.map(({ destination }) => destination),
    ...(mirror === undefined ? [] : [mirror]),
    ...mirrors.map(({ destination }) => destination),
  ]);
  const byTcp = [...tls, ...tcp].flatMap(({ route = [] }) => route.map(({ destination }) => destination));
  return [...byHttp, ...byTcp].map(({ host }) => host);
}

/** `host` or `namespace/host`. */
function providerService(provider: ExtensionProvider): readonly string[] {
  return Object.values(provider).flatMap((settings) =>
    typeof settings === "object" && "service" in settings && typeof settings.service === "string"
      ? [settings.service]
      : [],
  );
}

/** Envoy itself asks for keys, unless the control plane does. */
function issuerHosts({ features, requestAuthentications }: Snapshot): readonly string[] {
  if (features.keyFetching === "control-plane") return [];
  return requestAuthentications.flatMap(({ spec }) =>
    (spec.jwtRules ?? []).flatMap(({ jwksUri }) => (jwksUri && URL.parse(jwksUri)?.hostname) || []),
  );
}
