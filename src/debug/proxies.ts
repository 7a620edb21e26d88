/** Pages about connected proxies, in Istio's shape. */
import type { ConnectedProxy } from "#model/ports.ts";
import { servicesInScope } from "#translate/scope/egress.ts";
import { placeOf } from "#translate/scope/service-targets.ts";
import { viewsOf } from "#translate/views.ts";
import { askedProxy, type DebugState, PageRefusal, type PageRequest, visibleProxies } from "./page.ts";
import { serviceOf } from "./registryz.ts";

/** Who is connected. */
export function connections(state: DebugState, request: PageRequest): object {
  const clients = visibleProxies(state, request).map(connectionOf);
  return { totalClients: clients.length, clients };
}

/** The same with all that is known of them, and what they watch. */
export function adsz(state: DebugState, request: PageRequest): object | string {
  if (request.query.push) return pushed(state, request);
  const clients = visibleProxies(state, request).map((connected) => ({
    ...connectionOf(connected),
    labels: connected.proxy.labels,
    metadata: connected.proxy.metadata,
    locality: {},
    watches: Object.fromEntries(
      [...connected.types.keys()].map((typeUrl) => [typeUrl, [...connected.resources(typeUrl)].map(([name]) => name)]),
    ),
  }));
  return { totalClients: clients.length, clients };
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
  return Object.fromEntries(
    visibleProxies(state, request).map(({ proxy }) => [
      proxy.id,
      placeOf(snapshot, proxy.addresses, proxy.namespace).targets.map(({ service, port, targetPort }) => ({
        Service: serviceOf(service),
        Port: { name: port.name, port: port.port, protocol: port.protocol, TargetPort: targetPort },
      })),
    ]),
  );
}

/** What one proxy may see: its Sidecar, and the services in its scope. */
export function sidecarz(state: DebugState, request: PageRequest): object {
  const snapshot = state.source.current();
  const { proxy } = askedProxy(state, request);
  const { outbound } = viewsOf(snapshot, proxy);
  return {
    namespace: proxy.namespace,
    sidecar: outbound.sidecar,
    services: servicesInScope(snapshot, outbound)
      .list.map(({ namespace, hostname }) => `${namespace}/${hostname}`)
      .sort(),
  };
}
