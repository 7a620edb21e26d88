/** Recipes of the clusters of the workload's own ports. */
import { isIPv4, isIPv6 } from "node:net";
import type { ConnectionPool } from "#config/kinds/destination-rule/schema.ts";
import type { SidecarIngress } from "#config/kinds/sidecar/schema.ts";
import { parseProtocol } from "#config/terms/protocol.ts";
import type { Service } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { inboundTargets, ingressOf } from "../inbound/inbound-ports.ts";
import { INBOUND_PASSTHROUGH_CLUSTER, inboundCluster as inboundClusterName } from "../names/names.ts";
import { kept } from "../recipes/indexes.ts";
import { type Recipe, recipe } from "../recipes/recipe.ts";
import { localAddresses } from "../scope/addresses.ts";
import { destinationRuleFor } from "../scope/destination-rules.ts";
import { servicesInScope } from "../scope/egress.ts";
import { type SidecarObject, sidecarNamed } from "../scope/sidecars.ts";
import { UNIX_PREFIX } from "../traits/address.ts";
import type { InboundView } from "../views/views.ts";
import { inboundPassthroughCluster } from "./fixed.ts";
import { type InboundClusterInput, inboundCluster } from "./inbound.ts";

/** One for each port that services lead to or a Sidecar lists, and one for all others. */
export function planInboundClusters(snapshot: Snapshot, view: InboundView): readonly Recipe[] {
  const sidecar = sidecarNamed(snapshot, view.sidecar);
  const listed = sidecar === undefined ? [] : ingressOf(snapshot, view);
  const inputs = [
    ...serviceInputs(snapshot, view),
    ...listed.map((ingress) => ingressInput(snapshot, view, { ingress, sidecar })),
  ];
  const { mesh } = snapshot;
  const traits = view.traits.cluster;
  return [
    ...inputs.map((input) =>
      recipe({ name: inboundClusterName(input.targetPort), input: { ...input, traits, mesh }, build: inboundCluster }),
    ),
    recipe({ name: INBOUND_PASSTHROUGH_CLUSTER, input: { traits, mesh }, build: inboundPassthroughCluster }),
  ];
}

type Input = Omit<InboundClusterInput, "traits" | "mesh">;

function serviceInputs(snapshot: Snapshot, view: InboundView): readonly Input[] {
  const isLocal = snapshot.mesh.inboundTrafficPolicy.mode === "LOCALHOST";
  const endpoint = isLocal ? (localAddresses(view.traits.listener.ipMode)[0] ?? "") : "";
  return inboundTargets(snapshot, view).map(({ service, port, targetPort }) => {
    const sharing = view.targets.filter((target) => target.targetPort === targetPort && target.port.port === port.port);
    const services = [...new Map(sharing.map((target) => [target.service.hostname, target.service])).values()];
    const policies = policiesOf(snapshot, view, { service, port: targetPort });
    return { targetPort, port, services, endpoint, endpointPort: targetPort, ...policies };
  });
}

/** Sends to the endpoint that the Sidecar names; limits and statistics are those of the service on the port, if there is one. */
function ingressInput(
  snapshot: Snapshot,
  view: InboundView,
  { ingress, sidecar }: { readonly ingress: SidecarIngress; readonly sidecar: SidecarObject | undefined },
): Input {
  const { number = 0, name = "", protocol = "" } = ingress.port;
  const known = view.targets.find(({ targetPort }) => targetPort === number)?.service;
  const service = known ?? (sidecar && serviceOf(sidecar, view.namespace));
  const [endpoint, endpointPort] = endpointOf(ingress.defaultEndpoint ?? "", view);
  return {
    targetPort: number,
    port: kept(ingress, "port", [], () => ({ port: number, name, protocol: parseProtocol(protocol) })),
    services: service === undefined ? [] : [service],
    endpoint,
    endpointPort,
    ...policiesOf(snapshot, view, { service, port: number }),
  };
}

/** Stands for a service that does not exist, so that statistics have a name; what is outside the mesh tells no more. */
function serviceOf(sidecar: SidecarObject, namespace: string): Service {
  const { name } = sidecar.metadata;
  return kept(sidecar, `service ${namespace}`, [], () => ({
    hostname: `${name}.${namespace}`,
    name,
    namespace,
    registry: "External",
    addresses: [],
    autoAddress: undefined,
    ports: [],
    resolution: "static",
    meshExternal: true,
    headless: false,
    labels: {},
    exportTo: [],
    subjectAltNames: [],
    createdAt: 0,
  }));
}

/** A Sidecar's limits go before those of a rule, which counts only for services that the proxy can call itself. */
function policiesOf(
  snapshot: Snapshot,
  view: InboundView,
  { service, port }: { readonly service: Service | undefined; readonly port: number },
): Pick<Input, "rule" | "pool"> {
  const inScope = service && servicesInScope(snapshot, view).byHost.get(service.hostname);
  const viewpoint = { namespace: view.namespace, selectedRules: [] };
  return {
    rule: inScope && destinationRuleFor(snapshot, inScope, viewpoint),
    pool: poolOf(sidecarNamed(snapshot, view.sidecar), port),
  };
}

function poolOf(sidecar: SidecarObject | undefined, port: number): ConnectionPool | undefined {
  const own = sidecar?.spec.ingress?.find((ingress) => ingress.port.number === port && ingress.connectionPool);
  return own?.connectionPool ?? sidecar?.spec.inboundConnectionPool;
}

/** `0.0.0.0` and `::` mean the proxy's own address; loopback addresses are those of the families it has. */
function endpointOf(endpoint: string, { traits, addresses }: InboundView): readonly [string, number] {
  if (endpoint.startsWith(UNIX_PREFIX)) return [endpoint, 0];
  const [, bracketed, plain, port = "0"] = /^(?:\[(.*)\]|([^:]*)):(\d+)$/.exec(endpoint) ?? [];
  const local = localAddresses(traits.listener.ipMode);
  switch (bracketed ?? plain) {
    case "0.0.0.0":
      return [addresses.find(isIPv4) ?? "127.0.0.1", Number(port)];
    case "::":
      return [addresses.find(isIPv6) ?? "::1", Number(port)];
    case "127.0.0.1":
      return [local.find(isIPv4) ?? "::1", Number(port)];
    case "::1":
      return [local.find(isIPv6) ?? "127.0.0.1", Number(port)];
    default:
      return ["", 0];
  }
}
