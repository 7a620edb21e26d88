/** Recipes of the inbound listener of a view. */
import { isHttp, type Protocol } from "#model/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { statName } from "../clusters/stat-name.ts";
import { INBOUND_PASSTHROUGH_CLUSTER, inboundCluster, VIRTUAL_INBOUND } from "../names.ts";
import { type Recipe, recipe } from "../recipe.ts";
import { authorizationInput } from "../scope/authorization-policies.ts";
import { type MtlsMode, modeOfPort } from "../scope/peer-authentication.ts";
import { jwtInput } from "../scope/request-authentications.ts";
import type { ServiceTarget } from "../scope/service-targets.ts";
import type { InboundView } from "../views.ts";
import { inboundBlackHoleChain, inboundChain, type VirtualInboundInput, virtualInbound } from "./inbound.ts";
import { type InboundMatch, inboundMatches, inspectsHttp, inspectsTls, type PortKind } from "./inbound-match.ts";

const LISTENER_FILTER_CHAINS = 3;

/** The one listener for all captured incoming connections; none where nothing is captured. */
export function planInboundListeners(snapshot: Snapshot, view: InboundView): readonly Recipe[] {
  const { listener, tcp, http } = view.traits;
  if (listener.interception === "NONE") return [];
  const { mesh } = snapshot;
  const policies = {
    ...authorizationInput(snapshot, view.authorization),
    ...jwtInput(snapshot, view.authentication),
  };
  const ports = [...passthroughPorts(snapshot, view), ...servicePorts(snapshot, view)];
  const chains = ports.flatMap(({ matches, ...port }) =>
    matches.map((match) => ({ ...port, ...policies, match, ipMode: listener.ipMode, traits: http, mesh })),
  );
  const recipes = [
    recipe({ name: VIRTUAL_INBOUND, input: { traits: tcp, mesh }, build: inboundBlackHoleChain }),
    ...chains.map((input) => recipe({ name: VIRTUAL_INBOUND, input, build: inboundChain })),
  ];
  const input: VirtualInboundInput = {
    ipMode: listener.ipMode,
    interception: listener.interception,
    exactBalance: listener.inboundExactBalance,
    ...inspectors(ports, mesh.proxyInboundListenPort),
    mesh,
  };
  const parts = { field: LISTENER_FILTER_CHAINS, recipes };
  return [recipe({ name: VIRTUAL_INBOUND, input, build: virtualInbound, parts })];
}

interface InboundPort {
  readonly passthrough: boolean;
  readonly targetPort: number;
  readonly hostname: string;
  readonly servicePort: number;
  readonly protocol: Protocol;
  readonly tcpStatPrefix: string;
  readonly matches: readonly InboundMatch[];
}

/** All ports that no service names: those with a mode of their own one by one, the rest together. */
function passthroughPorts({ mesh }: Snapshot, { mtls, targets }: InboundView): readonly InboundPort[] {
  const tcpStatPrefix = statName(mesh.inboundClusterStatName, {
    service: { hostname: "", name: "", namespace: "", registry: "External" },
    port: { port: 0, name: VIRTUAL_INBOUND },
    subset: "",
    fallback: INBOUND_PASSTHROUGH_CLUSTER,
  });
  const named = new Set(targets.map(({ targetPort }) => targetPort));
  const special = Object.keys(mtls.ports)
    .map(Number)
    .filter((port) => !named.has(port));
  return [0, ...special.sort((a, b) => a - b)].map((targetPort) => ({
    passthrough: true,
    targetPort,
    hostname: "",
    servicePort: 0,
    protocol: "Unsupported",
    tcpStatPrefix,
    matches: inboundMatches("auto", modeOfPort(mtls, targetPort)),
  }));
}

function servicePorts(snapshot: Snapshot, view: InboundView): readonly InboundPort[] {
  return inboundTargets(snapshot, view).map(({ service, port, targetPort }) => {
    const fallback = inboundCluster(targetPort);
    return {
      passthrough: false,
      targetPort,
      hostname: service.hostname,
      servicePort: port.port,
      protocol: port.protocol,
      tcpStatPrefix: statName(snapshot.mesh.inboundClusterStatName, { service, port, subset: "", fallback }),
      matches: matchesOf(port.protocol, modeOfPort(view.mtls, targetPort), snapshot),
    };
  });
}

/** One target per port of the application, by number: the oldest service decides. Envoy's own ports are left out. */
export function inboundTargets({ mesh }: Snapshot, { targets, traits }: InboundView): readonly ServiceTarget[] {
  const taken = new Set([...traits.listener.reservedPorts, mesh.proxyListenPort, mesh.proxyInboundListenPort]);
  const byPort = new Map<number, ServiceTarget>();
  for (const target of targets) {
    const { targetPort } = target;
    if (targetPort > 0 && !taken.has(targetPort) && !byPort.has(targetPort)) byPort.set(targetPort, target);
  }
  return [...byPort.values()].sort((a, b) => a.targetPort - b.targetPort);
}

function matchesOf(protocol: Protocol, mode: MtlsMode, { features }: Snapshot): readonly InboundMatch[] {
  const undeclared: PortKind = features.sniffInbound ? "auto" : "tcp";
  const kind = protocol === "Unsupported" ? undeclared : isHttp(protocol) ? "http" : "tcp";
  return inboundMatches(kind, mode);
}

/** Inspectors run where some chain needs them, and nowhere else: they hold up protocols whose server speaks first. */
function inspectors(
  ports: readonly InboundPort[],
  ownPort: number,
): Pick<VirtualInboundInput, "tlsInspector" | "tlsPorts" | "httpInspector" | "httpPorts"> {
  const needs = new Map<number, { tls: boolean; http: boolean }>([[ownPort, { tls: false, http: false }]]);
  for (const { targetPort, matches } of ports) {
    needs.set(targetPort, { tls: matches.some(inspectsTls), http: matches.some(inspectsHttp) });
  }
  const sorted = [...needs].sort(([a], [b]) => a - b);
  const anyTls = sorted.some(([, { tls }]) => tls);
  const anyHttp = sorted.some(([, { http }]) => http);
  const usuallyTls = needs.get(0)?.tls === true;
  return {
    tlsInspector: !anyTls ? "nowhere" : usuallyTls ? "except" : "only",
    tlsPorts: sorted.filter(([port, { tls }]) => port !== 0 && tls !== usuallyTls).map(([port]) => port),
    httpInspector: anyHttp ? "except" : "nowhere",
    httpPorts: sorted.filter(([, { http }]) => !http).map(([port]) => port),
  };
}
