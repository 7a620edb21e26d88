/** Pages about connected proxies, in Istio's shape. */
import {
  CLUSTER_LABEL,
  NETWORK_LABEL,
  REGION_LABEL,
  SUBZONE_LABEL,
  ZONE_LABEL,
} from "#config/terms/topology-labels.ts";
import type { ConnectedProxy } from "#model/ports.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import { placeOf } from "#translate/targets/service-targets.ts";
import { askedProxy, type DebugState, PageRefusal, type PageRequest, visibleProxies } from "./page.ts";
import { protocolName, serviceForm } from "./registryz.ts";

/** Who is connected. */
export function connections(state: DebugState, request: PageRequest): object {
  const clients = visibleProxies(state, request).map(connectionOf);
  return { totalClients: clients.length, clients };
}

/** The same with all that is known of them, and what they watch; or of one of them, by `proxyID`. */
export function adsz(state: DebugState, request: PageRequest): object | string {
  if (request.query.push) return pushed(state, request);
  const shown = request.query.proxyID ? [askedProxy(state, request)] : visibleProxies(state, request);
  const clients = shown.map((connected) => ({
    ...connectionOf(connected),
    labels: labelsOf(connected.proxy),
    metadata: connected.proxy.metadata,
    locality: localityOf(connected.proxy),
    watches: Object.fromEntries(
      [...connected.types.keys()].map((typeUrl) => [typeUrl, [...connected.resources(typeUrl)].map(([name]) => name)]),
    ),
  }));
  return { totalClients: clients.length, clients };
}

/** With where it is, as far as it said. */
function labelsOf({ labels, metadata, locality = "" }: MeshProxy): Readonly<Record<string, string>> {
  const { CLUSTER_ID: cluster, NETWORK: network } = metadata;
  const [region = "", zone = "", subzone = ""] = locality.split("/");
  return {
    ...(region !== "" && { [REGION_LABEL]: region }),
    ...(zone !== "" && { [ZONE_LABEL]: zone }),
    ...(subzone !== "" && { [SUBZONE_LABEL]: subzone }),
    ...(typeof cluster === "string" && cluster !== "" && { [CLUSTER_LABEL]: cluster }),
    ...(typeof network === "string" && network !== "" && { [NETWORK_LABEL]: network }),
    ...labels,
  };
}

function localityOf({ locality = "" }: MeshProxy): object {
  const [region = "", zone = "", subZone = ""] = locality.split("/");
  return {
    ...(region !== "" && { region }),
    ...(zone !== "" && { zone }),
    ...(subZone !== "" && { sub_zone: subZone }),
  };
}

function pushed(state: DebugState, { scope }: PageRequest): string {
  if (scope !== undefined) throw new PageRefusal(403, "A push is for callers of the root namespace");
  state.push?.();
  return `Pushed to ${state.connections().length} servers\n`;
}

/** Ends the stream of a proxy. */
export function forceDisconnect(state: DebugState, request: PageRequest): string {
  askedProxy(state, request).disconnect?.();
  return "OK";
}

function connectionOf({ connectionId, connectedAt, address }: ConnectedProxy): object {
  return { connectionId, connectedAt: new Date(connectedAt).toISOString(), address };
}

/** The services that each proxy stands behind. */
export function instancesz(state: DebugState, request: PageRequest): object {
  const snapshot = state.source.current();
  const show = serviceForm(snapshot, state.source.objects());
  return Object.fromEntries(
    visibleProxies(state, request).map(({ proxy }) => [
      proxy.id,
      placeOf(snapshot, proxy).targets.map(({ service, port, targetPort }) => ({
        Service: show(service),
        Port: { name: port.name, port: port.port, protocol: protocolName(port.protocol), TargetPort: targetPort },
      })),
    ]),
  );
}
