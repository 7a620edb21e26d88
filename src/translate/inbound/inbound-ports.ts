/** The ports of the workload: those that services lead to, or those that a Sidecar lists instead. */

import type { ServerTls } from "#config/kinds/gateway/schema.ts";
import type { SidecarIngress } from "#config/kinds/sidecar/schema.ts";
import { parseProtocol } from "#config/terms/protocol.ts";
import { isHttp, type Protocol } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { configPath, INBOUND_PASSTHROUGH_CLUSTER, inboundCluster, VIRTUAL_INBOUND } from "../names/names.ts";
import { statName } from "../names/stat-name.ts";
import { type MtlsMode, modeOfPort, type WorkloadMtls } from "../policies/peer-authentication.ts";
import { globalAddress, wildcardAddresses } from "../scope/addresses.ts";
import { type SidecarObject, sidecarNamed } from "../scope/sidecars.ts";
import type { ServiceTarget } from "../targets/service-targets.ts";
import type { InboundView } from "../views/views.ts";
import {
  ENDED_TLS,
  type InboundMatch,
  inboundMatches,
  type PortKind,
  refusedMatches,
  withHttp10,
} from "./inbound-match.ts";

/** A port, and what its chains are made from. */
export interface InboundPort {
  readonly passthrough: boolean;
  readonly targetPort: number;
  readonly hostname: string;
  readonly servicePort: number;
  readonly protocol: Protocol;
  readonly tcpStatPrefix: string;
  readonly matches: readonly InboundMatch[];
  /** The address that it is called on, which chains are named after. */
  readonly bind: string;
  /** Has a listener of its own, instead of being captured. */
  readonly isOpened: boolean;
  /** TLS of the user's own, which ends here. */
  readonly tls: ServerTls | undefined;
  /** The path of the Sidecar that lists the port; empty for services. */
  readonly origin: string;
}

/** All ports of the workload that are known, by number. Where nothing is captured, only a Sidecar can open ports. */
export function inboundPorts(snapshot: Snapshot, view: InboundView): readonly InboundPort[] {
  const sidecar = sidecarNamed(snapshot, view.sidecar);
  const listed = sidecar === undefined ? [] : ingressPorts(snapshot, view, sidecar);
  const ports = [...servicePorts(snapshot, view), ...listed];
  return ports.sort((a, b) => a.targetPort - b.targetPort);
}

/** All ports that nobody names: those with a mode of their own one by one, the rest together. */
export function passthroughPorts(snapshot: Snapshot, view: InboundView): readonly InboundPort[] {
  const { mtls } = view;
  const tcpStatPrefix = statName(snapshot.mesh.inboundClusterStatName, {
    service: { hostname: "", name: "", namespace: "", registry: "External" },
    port: { port: 0, name: VIRTUAL_INBOUND },
    subset: "",
    fallback: INBOUND_PASSTHROUGH_CLUSTER,
  });
  const ingress = ingressOf(snapshot, view);
  const named = new Set(
    ingress.length > 0 ? ingress.map(({ port }) => port.number) : view.targets.map(({ targetPort }) => targetPort),
  );
  const special = Object.keys(mtls.ports)
    .map(Number)
    .filter((port) => !named.has(port));
  return [0, ...special.sort((a, b) => a - b)].map((targetPort) => ({
    ...UNLISTED,
    passthrough: true,
    targetPort,
    hostname: "",
    servicePort: 0,
    protocol: "Unsupported",
    tcpStatPrefix,
    matches: matchesOfKind("auto", portMtls(mtls, targetPort), snapshot),
    bind: "",
    isOpened: false,
  }));
}

const UNLISTED = { tls: undefined, origin: "" };

/** The listeners that the Sidecar of a view lists. */
export function ingressOf(snapshot: Snapshot, view: InboundView): readonly SidecarIngress[] {
  return sidecarNamed(snapshot, view.sidecar)?.spec.ingress ?? [];
}

/** Connections to Envoy's own ports are not handed on. */
function servicePorts(snapshot: Snapshot, view: InboundView): readonly InboundPort[] {
  const { ipMode, interception, reservedPorts } = view.traits.listener;
  const { mesh } = snapshot;
  const taken = new Set([...reservedPorts, mesh.proxyListenPort, mesh.proxyInboundListenPort]);
  const targets = inboundTargets(snapshot, view).filter(({ targetPort }) => !taken.has(targetPort));
  return targets.map(({ service, port, targetPort }) => {
    const fallback = inboundCluster(targetPort);
    return {
      ...UNLISTED,
      passthrough: false,
      targetPort,
      hostname: service.hostname,
      servicePort: port.port,
      protocol: port.protocol,
      tcpStatPrefix: statName(mesh.inboundClusterStatName, { service, port, subset: "", fallback }),
      matches: matchesOf(port.protocol, portMtls(view.mtls, targetPort), snapshot),
      bind: wildcardAddresses(ipMode)[0] ?? "",
      isOpened: interception === "NONE",
    };
  });
}

/**
 * One target per port of the application, by number: the oldest service decides. What a Sidecar lists is left out, or
 * everything once it lists something, as the control plane is set up.
 */
export function inboundTargets(snapshot: Snapshot, view: InboundView): readonly ServiceTarget[] {
  const { interception } = view.traits.listener;
  const ingress = ingressOf(snapshot, view);
  if (ingress.length > 0 ? !snapshot.features.mergeSidecarIngress : interception === "NONE") return [];
  const taken = new Set(ingress.map(({ port }) => port.number));
  const byPort = new Map<number, ServiceTarget>();
  for (const target of view.targets) {
    const { targetPort } = target;
    if (targetPort > 0 && !taken.has(targetPort) && !byPort.has(targetPort)) byPort.set(targetPort, target);
  }
  return [...byPort.values()].sort((a, b) => a.targetPort - b.targetPort);
}

function ingressPorts(snapshot: Snapshot, view: InboundView, sidecar: SidecarObject): readonly InboundPort[] {
  const byPort = new Map<number, InboundPort>();
  for (const ingress of sidecar.spec.ingress ?? []) {
    const made = ingressPort(snapshot, view, { ingress, sidecar });
    if (made !== undefined && !byPort.has(made.targetPort)) byPort.set(made.targetPort, made);
  }
  return [...byPort.values()];
}

/** A listener of a Sidecar; undefined where it cannot be: the port is Envoy's own, or not for the unprivileged. */
function ingressPort(
  snapshot: Snapshot,
  view: InboundView,
  { ingress, sidecar }: { readonly ingress: SidecarIngress; readonly sidecar: SidecarObject },
): InboundPort | undefined {
  const { ipMode, interception, unprivileged, reservedPorts } = view.traits.listener;
  const { number = 0, name = "", protocol: written = "" } = ingress.port;
  const { captureMode = "DEFAULT" } = ingress;
  const [wildcard = ""] = wildcardAddresses(ipMode);
  const isOpened = captureMode === "DEFAULT" ? interception === "NONE" : captureMode === "NONE";
  const declared = parseProtocol(written);
  const isAnywhere = ingress.bind ? ingress.bind === wildcard : isHttp(declared);
  if ((isOpened && unprivileged && number < 1024) || (isAnywhere && reservedPorts.includes(number))) return undefined;
  const mtls = portMtls(view.mtls, number);
  const wanted = snapshot.features.tlsOnSidecarIngress ? ingress.tls : undefined;
  const protocol = wanted === undefined ? declared : withoutTls(declared);
  // The mesh's own TLS and the user's cannot both be on one port.
  const tls = mtls.mode === "DISABLE" ? wanted : undefined;
  const { namespace } = view;
  const hostname = `${sidecar.metadata.name}.${namespace}`;
  return {
    passthrough: false,
    targetPort: number,
    hostname,
    servicePort: number,
    protocol,
    tcpStatPrefix: statName(snapshot.mesh.inboundClusterStatName, {
      service: { hostname, name: "", namespace: "", registry: "External" },
      port: { port: number, name },
      subset: "",
      fallback: inboundCluster(number),
    }),
    matches: tls === undefined ? matchesOf(protocol, mtls, snapshot) : [ENDED_TLS[isHttp(protocol) ? "http" : "tcp"]],
    bind: ingress.bind || globalAddress(view.addresses) || wildcard,
    isOpened,
    tls,
    origin: configPath("networking.istio.io", sidecar.kind, { namespace, name: sidecar.metadata.name }),
  };
}

function withoutTls(protocol: Protocol): Protocol {
  return protocol === "HTTPS" ? "HTTP" : protocol === "TLS" ? "TCP" : protocol;
}

interface PortMtls {
  readonly mode: MtlsMode;
  /** Plain text is refused in the name of an object. */
  readonly isRefused: boolean;
}

function portMtls(mtls: WorkloadMtls, port: number): PortMtls {
  return { mode: modeOfPort(mtls, port), isRefused: mtls.refusedBy !== undefined && mtls.ports[port] === undefined };
}

function matchesOf(protocol: Protocol, mtls: PortMtls, snapshot: Snapshot): readonly InboundMatch[] {
  const undeclared: PortKind = snapshot.features.sniffInbound ? "auto" : "tcp";
  const kind = protocol === "Unsupported" ? undeclared : isHttp(protocol) ? "http" : "tcp";
  return matchesOfKind(kind, mtls, snapshot);
}

function matchesOfKind(kind: PortKind, { mode, isRefused }: PortMtls, snapshot: Snapshot): readonly InboundMatch[] {
  const matches = withDetected(inboundMatches(kind, mode), snapshot);
  return isRefused ? [...matches, ...withDetected(refusedMatches(kind), snapshot)] : matches;
}

function withDetected(matches: readonly InboundMatch[], { features }: Snapshot): readonly InboundMatch[] {
  return features.http10 ? withHttp10("", matches) : matches;
}
