/** Recipes of the outbound listeners of a view. */
import type { Steps } from "#lib/async/steps.ts";
import type { Service } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { listenerName, VIRTUAL_OUTBOUND } from "../names/names.ts";
import { derived, kept, keptSteps } from "../recipes/indexes.ts";
import { type Recipe, recipe } from "../recipes/recipe.ts";
import { scopeOf } from "../scope/egress.ts";
import { sidecarNamed, unknownTarget } from "../scope/sidecars.ts";
import type { OutboundView } from "../views/views.ts";
import { httpChain, type TcpChain, takesAll, tcpChain } from "./chains.ts";
import { type OutboundListenerInput, outboundListener, virtualOutbound } from "./outbound.ts";
import { type ChainEntry, type ListenerEntry, outboundEntries, type TcpChainEntry } from "./outbound-entries.ts";
import { tcpVirtualServices } from "./tcp-routes.ts";

/** One listener per address and port of the services in view, and the one that receives everything. */
export function* planOutboundListeners(snapshot: Snapshot, view: OutboundView): Steps<readonly Recipe[]> {
  const entries = yield* entriesOf(snapshot, view);
  const { http, tcp, listener } = view.traits;
  const unknown = unknownTarget(snapshot, sidecarNamed(snapshot, view.sidecar));
  const { mesh } = snapshot;
  const listeners = kept(entries, `recipes ${view.key}`, [http, tcp, listener, unknown, mesh], () => {
    const from = [mesh, unknown, tcp, listener.outboundExactBalance];
    return entries.map((entry) => {
      const make = () => listenerRecipe(entry, { mesh, unknown }, view);
      return leadsToOne(entry) ? kept(entry, "recipe", from, make) : make();
    });
  });
  const { ipMode, dualStack, ipv4BesideIpv6, interception } = listener;
  if (interception === "NONE") return listeners;
  const families = { ipMode, dualStack, ipv4BesideIpv6 };
  const input = { ...families, interception, unknown, traits: view.traits.tcp, mesh };
  return [...listeners, recipe({ name: VIRTUAL_OUTBOUND, input, build: virtualOutbound })];
}

/** The names of the routes that the listeners fetch. */
export function* routeNamesOf(snapshot: Snapshot, view: OutboundView): Steps<ReadonlySet<string>> {
  const entries = yield* entriesOf(snapshot, view);
  const names = new Set<string>();
  for (const { chains } of entries) for (const chain of chains) if (chain.kind === "http") names.add(chain.routeName);
  return names;
}

/**
 * Workloads differ in what their HTTP filters tell of them, but hardly in which listeners they have. Endpoints matter only
 * where services without an address are called by theirs.
 */
function* entriesOf(snapshot: Snapshot, view: OutboundView): Steps<readonly ListenerEntry[]> {
  const { mesh, features, services, destinationRules } = snapshot;
  const { role, namespace, dnsDomain, sidecar, traits, selectedRules, sourceConditions } = view;
  const { listener, autoAddresses } = traits;
  const of = [role, namespace, dnsDomain, sidecar, listener, autoAddresses, selectedRules, sourceConditions];
  const scope = scopeOf(snapshot, view);
  const imported = scope.listeners.flatMap((one) => [one.services, ...tcpVirtualServices("", one.virtualServices)]);
  const endpoints = hasHeadless("", services) ? [snapshot.endpoints] : [];
  const from = [mesh, features, destinationRules, scope.sidecar, scope.services, ...imported, ...endpoints];
  const key = `listeners ${JSON.stringify(of)}`;
  return yield* keptSteps(services, { key, from }, () => outboundEntries(snapshot, view));
}

const hasHeadless = derived((_: string, services: readonly Service[]) =>
  services.some(({ resolution }) => resolution === "passthrough"),
);

const LISTENER_FILTER_CHAINS = 3;
const NO_CHAIN: TcpChain = {
  clusters: [],
  weights: [],
  statPrefix: "",
  protocol: "TCP",
  subset: "",
  rule: undefined,
  origin: undefined,
  serverNames: [],
  ranges: [],
};

type Outside = Pick<OutboundListenerInput, "mesh" | "unknown">;

/** Most listeners have one chain, to a service: they are the same as long as that is. */
function leadsToOne({ chains }: ListenerEntry): boolean {
  return chains.length === 1 && chains[0]?.kind === "tcp";
}

function listenerRecipe(entry: ListenerEntry, { mesh, unknown }: Outside, view: OutboundView): Recipe {
  const name = listenerName(entry.addresses[0] ?? "", entry.port);
  const { tcp, http, listener } = view.traits;
  const all = entry.chains.length === 1 ? undefined : entry.chains.find(isCatchAll)?.chain;
  const recipes = entry.chains
    .filter((chain) => chain.kind === "http" || chain.chain !== all)
    .map((chain) =>
      chain.kind === "tcp"
        ? recipe({ name, input: { ...chain.chain, traits: tcp, mesh }, build: tcpChain })
        : recipe({ name, input: { listener: name, ...chain, traits: http, mesh }, build: httpChain }),
    );
  const input: OutboundListenerInput = {
    ...(all ?? NO_CHAIN),
    addresses: entry.addresses,
    port: entry.port,
    bindToPort: entry.isOpened,
    inspectsTls: entry.chains.some((chain) => chain.kind === "tcp" && chain.chain.serverNames.length > 0),
    inspectsHttp: entry.chains.some((chain) => chain.kind === "http" && chain.sniffed),
    rest: all !== undefined ? "chain" : entry.chains.every(takesEverything) ? "none" : "passthrough",
    unknown,
    exactBalance: listener.outboundExactBalance,
    traits: tcp,
    mesh,
  };
  return recipe({ name, input, build: outboundListener, parts: { field: LISTENER_FILTER_CHAINS, recipes } });
}

function isCatchAll(chain: ChainEntry): chain is TcpChainEntry {
  return chain.kind === "tcp" && takesAll(chain.chain);
}

/** A single chain that takes all needs no other for the rest; HTTP that is not detected takes whatever comes as HTTP. */
function takesEverything(chain: ChainEntry): boolean {
  return chain.kind === "http" ? !chain.sniffed : takesAll(chain.chain);
}
