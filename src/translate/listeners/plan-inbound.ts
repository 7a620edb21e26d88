/** Recipes of the inbound listener of a view. */
import type { Snapshot } from "#model/snapshot.ts";
import { inspectsHttp, inspectsTls } from "../inbound/inbound-match.ts";
import { type InboundPort, inboundPorts, passthroughPorts } from "../inbound/inbound-ports.ts";
import { listenerName, VIRTUAL_INBOUND } from "../names/names.ts";
import { authorizationInput } from "../policies/authorization-policies.ts";
import { jwtInput } from "../policies/request-authentications.ts";
import { type Recipe, recipe } from "../recipes/recipe.ts";
import { wildcardAddresses } from "../scope/addresses.ts";
import { credentialProviders } from "../scope/credential-providers.ts";
import type { InboundView } from "../views/views.ts";
import { type InboundListenerInput, inboundBlackHoleChain, inboundChain, inboundListener } from "./inbound.ts";

const LISTENER_FILTER_CHAINS = 3;

/** The one listener for all captured incoming connections, and those that a Sidecar opens. */
export function planInboundListeners(snapshot: Snapshot, view: InboundView): readonly Recipe[] {
  const ports = inboundPorts(snapshot, view);
  const opened = ports.filter(({ isOpened }) => isOpened).map((port) => openedListener(snapshot, view, port));
  if (view.traits.listener.interception === "NONE") return opened;
  const captured = ports.filter(({ isOpened }) => !isOpened);
  return [virtualListener(snapshot, view, [...passthroughPorts(snapshot, view), ...captured]), ...opened];
}

function virtualListener(snapshot: Snapshot, view: InboundView, ports: readonly InboundPort[]): Recipe {
  const { listener, tcp } = view.traits;
  const { mesh } = snapshot;
  const name = VIRTUAL_INBOUND;
  const port = mesh.proxyInboundListenPort;
  const [address = "", ...more] = wildcardAddresses(listener.ipMode);
  const input: InboundListenerInput = {
    name,
    address,
    moreAddresses: listener.dualStack ? more : [],
    port,
    interception: listener.interception,
    exactBalance: listener.inboundExactBalance,
    ...inspectors(ports, port),
    traits: tcp,
    mesh,
  };
  const blackHole = recipe({ name, input: { traits: tcp, mesh }, build: inboundBlackHoleChain });
  const recipes = [blackHole, ...chainsOf(snapshot, view, { name, ports })];
  return recipe({ name, input, build: inboundListener, parts: { field: LISTENER_FILTER_CHAINS, recipes } });
}

/** Clients connect to it themselves, whatever else is captured. */
function openedListener(snapshot: Snapshot, view: InboundView, port: InboundPort): Recipe {
  const name = listenerName(port.bind, port.targetPort);
  const input: InboundListenerInput = {
    name,
    address: port.bind,
    moreAddresses: [],
    port: port.targetPort,
    interception: "NONE",
    exactBalance: view.traits.listener.inboundExactBalance,
    ...inspectors([port]),
    traits: view.traits.tcp,
    mesh: snapshot.mesh,
  };
  const recipes = chainsOf(snapshot, view, { name, ports: [port] });
  return recipe({ name, input, build: inboundListener, parts: { field: LISTENER_FILTER_CHAINS, recipes } });
}

function chainsOf(
  snapshot: Snapshot,
  view: InboundView,
  { name, ports }: { readonly name: string; readonly ports: readonly InboundPort[] },
): readonly Recipe[] {
  const shared = {
    ...authorizationInput(snapshot, view.authorization),
    ...jwtInput(snapshot, view.authentication),
    serverSecrets: view.traits.listener.serverSecrets,
    credentialProviders: credentialProviders(snapshot),
    traits: view.traits.http,
    mesh: snapshot.mesh,
  };
  const { refusedBy } = view.mtls;
  const refusal = refusedBy && authorizationInput(snapshot, [refusedBy]);
  return ports.flatMap(({ matches, isOpened: _, ...port }) =>
    matches.map((match) => {
      const input = { ...port, ...shared, ...(match.isRefused && refusal), match };
      return recipe({ name, input, build: inboundChain });
    }),
  );
}

/** Inspectors run where some chain needs them, and nowhere else: they hold up protocols whose server speaks first. */
function inspectors(
  ports: readonly InboundPort[],
  ownPort?: number,
): Pick<InboundListenerInput, "tlsInspector" | "tlsPorts" | "httpInspector" | "httpPorts"> {
  const needs = new Map<number, { tls: boolean; http: boolean }>();
  if (ownPort !== undefined) needs.set(ownPort, { tls: false, http: false });
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
