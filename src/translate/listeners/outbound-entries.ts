/**
 * Which outbound listeners there are, and what each has to tell apart. HTTP services of a port share one listener on all
 * addresses and are told apart by their host name; other services have a listener on their own address. Where both meet on
 * one address, the first bytes of a connection decide.
 */
import { isIP } from "node:net";
import { ITEMS_PER_STEP, type Steps } from "#lib/async/steps.ts";
import { endpointPort } from "#model/service/endpoint.ts";
import { isHttp, type Protocol, type Service, type ServicePort, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { HTTP_PROXY_ROUTES, ownRouteName, sharedRouteName } from "../names/names.ts";
import { kept } from "../recipes/indexes.ts";
import {
  type AddressTraits,
  isOneDestination,
  localAddresses,
  serviceAddresses,
  wildcardAddresses,
} from "../scope/addresses.ts";
import { type EgressListener, scopeOf } from "../scope/egress.ts";
import { UNIX_PREFIX } from "../traits/address.ts";
import type { OutboundView } from "../views/views.ts";
import type { TcpChain } from "./chains.ts";
import { type ChainMatch, type Taken, takeFree } from "./distinct-chains.ts";
import { tcpChains } from "./tcp-routes.ts";

/** A chain for HTTP, before the proxy's own traits are added. */
export interface HttpChainEntry {
  readonly kind: "http";
  readonly routeName: string;
  readonly sniffed: boolean;
  readonly protocol: Protocol;
}

/** A chain for anything else. */
export interface TcpChainEntry {
  readonly kind: "tcp";
  readonly chain: TcpChain;
}

export type ChainEntry = HttpChainEntry | TcpChainEntry;

/** One listener with all that comes to its address. */
export interface ListenerEntry {
  readonly addresses: readonly string[];
  readonly port: number;
  /** Opens its port, instead of being handed connections. */
  readonly isOpened: boolean;
  /** What the listener takes; `Unsupported` when it has to detect it. */
  readonly protocol: Protocol;
  readonly chains: readonly ChainEntry[];
}

/** A listener to which several services come. */
interface SharedEntry extends ListenerEntry {
  protocol: Protocol;
  readonly chains: ChainEntry[];
  /** Which connections the chains take. */
  readonly taken: Taken;
}

/** How a port takes part: by HTTP, by any protocol, or by detecting which. */
type Kind = "http" | "tcp" | "auto";

/** A service port, and the way out through which it is called. */
interface Call {
  readonly service: Service;
  /** Those of the service for this proxy. */
  readonly own: readonly string[];
  readonly port: ServicePort;
  readonly kind: Kind;
  readonly listener: EgressListener;
  readonly binding: Binding;
}

/** Where a listener of the scope listens. */
interface Binding {
  readonly isOpened: boolean;
  /** None for the addresses of the services. */
  readonly addresses: readonly string[];
}

/** Where a service port is expected. */
interface Spot {
  readonly addresses: readonly string[];
  readonly ranges: readonly string[];
  /** It is for a range of addresses, though the listener is on another. */
  readonly isRange?: boolean;
}

/** All that counts besides the services themselves. */
interface Place {
  readonly snapshot: Snapshot;
  readonly view: OutboundView;
  readonly addressTraits: AddressTraits;
  readonly wildcards: readonly string[];
  /** Any address, as for HTTP. */
  readonly anywhere: readonly Spot[];
  /** Ports that Envoy itself listens on. */
  readonly reserved: ReadonlySet<number>;
}

function placeOf(snapshot: Snapshot, view: OutboundView): Place {
  const { listener, autoAddresses } = view.traits;
  const { proxyListenPort, proxyInboundListenPort } = snapshot.mesh;
  const wildcards = wildcardAddresses(listener.ipMode);
  return {
    snapshot,
    view,
    addressTraits: { ...listener, autoAddresses },
    wildcards,
    anywhere: [{ addresses: wildcards, ranges: NO_RANGES }],
    reserved: new Set([...listener.reservedPorts, proxyListenPort, proxyInboundListenPort]),
  };
}

const NO_RANGES: readonly string[] = [];

/** The listeners of a view, by address and port. Earlier services win conflicts that cannot be solved by detection. */
export function* outboundEntries(snapshot: Snapshot, view: OutboundView): Steps<readonly ListenerEntry[]> {
  const entries = new Entries(placeOf(snapshot, view));
  for (const listener of scopeOf(snapshot, view).listeners) {
    if (listener.port === undefined) entries.close();
    const binding = bindingOf(listener, view);
    let count = 0;
    for (const service of listener.services) {
      if (count++ % ITEMS_PER_STEP === 0) yield;
      for (const declared of service.declarations ?? [service]) entries.add(declared, listener, binding);
    }
  }
  const proxy = httpProxy(view);
  if (proxy !== undefined) entries.set(proxy);
  return entries.list();
}

/** Applications that are told to use a proxy for HTTP find one here, if somebody says where. */
function httpProxy({ traits }: OutboundView): ListenerEntry | undefined {
  const { httpProxyPort: port, ipMode } = traits.listener;
  if (port === 0) return undefined;
  const protocol = "HTTP_PROXY";
  const chain: HttpChainEntry = { kind: "http", routeName: HTTP_PROXY_ROUTES, sniffed: false, protocol };
  return { addresses: localAddresses(ipMode), port, isOpened: true, protocol, chains: [chain] };
}

/** Nothing can be redirected to a socket file, nor where nothing is captured. */
function bindingOf({ bind, isOpened }: EgressListener, { traits }: OutboundView): Binding {
  const { interception, ipMode } = traits.listener;
  const opens = isOpened || interception === "NONE" || bind.startsWith(UNIX_PREFIX);
  return { isOpened: opens, addresses: bind !== "" ? [bind] : opens ? localAddresses(ipMode) : [] };
}

function kindOf(protocol: Protocol, sniffs: boolean): Kind | undefined {
  if (protocol === "UDP") return undefined;
  if (protocol === "Unsupported") return sniffs ? "auto" : "tcp";
  return isHttp(protocol) ? "http" : "tcp";
}

/** The addresses on which a service port is expected. */
function spotsOf(call: Call, place: Place): readonly Spot[] {
  const { service, own, kind, binding } = call;
  if (binding.addresses.length > 0) {
    const { addresses } = binding;
    const [first = "", ...others] = own;
    const named = isOneDestination(service) ? [first] : [first, ...others];
    return named.map((address) => ({ addresses, ranges: NO_RANGES, isRange: address.includes("/") }));
  }
  if (kind === "http") return place.anywhere;
  if (own.length === 0) return withoutAddress(call, place);
  const groups = isOneDestination(service) ? [own] : own.map((address) => [address]);
  return groups.map((addresses) =>
    addresses[0]?.includes("/") ? { addresses: place.wildcards, ranges: addresses } : { addresses, ranges: NO_RANGES },
  );
}

/** A headless service is called by the addresses of its endpoints; any other host without an address by any address. */
function withoutAddress({ service, port, listener }: Call, { snapshot, wildcards }: Place): readonly Spot[] {
  const anywhere: Spot = {
    addresses: service.registry === "External" ? wildcards : wildcards.slice(0, 1),
    ranges: NO_RANGES,
  };
  if (service.resolution !== "passthrough" || listener.port !== undefined) return [anywhere];
  const endpoints = snapshot.endpoints.get(serviceKey(service))?.endpoints ?? [];
  const instances = endpoints.filter((endpoint) => endpointPort(endpoint, port) !== undefined);
  const mayHaveSome = service.registry === "Kubernetes" || service.selector !== undefined;
  if (instances.length === 0 && !mayHaveSome) return [anywhere];
  const reachable = instances.filter(({ address }) => isIP(address) !== 0);
  return reachable.map(({ address, addresses = [address] }) => ({ addresses, ranges: NO_RANGES }));
}

/** Listeners as services come to them. */
class Entries {
  readonly #place: Place;
  readonly #entries = new Map<string, ListenerEntry>();
  /** Those of them to which more than one service came. */
  readonly #shared = new Map<string, SharedEntry>();
  /** Those that a Sidecar has for a port of its own: services of its other listeners do not come to them. */
  #closed: ReadonlySet<string> = new Set();

  constructor(place: Place) {
    this.#place = place;
  }

  list(): readonly ListenerEntry[] {
    return [...this.#entries.values()];
  }

  /** In place of one that is there. */
  set(entry: ListenerEntry): void {
    const key = keyOf(entry.addresses, entry.port);
    this.#entries.set(key, entry);
    this.#shared.delete(key);
  }

  /** Nobody comes to those that are there by now. */
  close(): void {
    this.#closed = new Set(this.#entries.keys());
  }

  add(service: Service, listener: EgressListener, binding: Binding): void {
    if (service.resolution === "alias") return;
    const { features } = this.#place.snapshot;
    const own = serviceAddresses(service, this.#place.addressTraits);
    for (const port of listener.port === undefined ? service.ports : [listener.port]) {
      const kind = kindOf(port.protocol, features.sniffOutbound);
      if (kind === undefined) continue;
      const call = { service, own, port, kind, listener, binding };
      for (const spot of spotsOf(call, this.#place)) if (!this.#isReserved(call, spot)) this.#addTo(call, spot);
    }
  }

  /** Two listeners cannot have one address. */
  #isReserved({ port: { port }, binding }: Call, { addresses }: Spot): boolean {
    const { view, reserved, wildcards } = this.#place;
    if (binding.isOpened && view.traits.listener.unprivileged && port > 0 && port < 1024) return true;
    return addresses[0] === wildcards[0] && reserved.has(port);
  }

  #addTo(call: Call, spot: Spot): void {
    const { port, kind } = call;
    const key = keyOf(spot.addresses, port.port);
    if (this.#closed.has(key)) return;
    const known = this.#entries.get(key);
    if (known === undefined || port.protocol === "HTTP_PROXY") {
      this.set(newEntry(call, spot, this.#place));
      return;
    }
    const isFirstOfKind = kind === "http" ? isTcp(known.protocol) : kind === "tcp" || known.protocol !== "Unsupported";
    if (!isFirstOfKind || !canShare(known.protocol, port.protocol)) return;
    if (kind === "auto" && isHttp(known.protocol)) {
      this.set(newEntry(call, spot, this.#place));
      return;
    }
    const shared = this.#shared.get(key) ?? this.#share(key, known);
    addChains(shared, chainsOf(call, spot, this.#place));
    if (!(kind === "tcp" && isTcp(known.protocol))) shared.protocol = "Unsupported";
  }

  #share(key: string, entry: ListenerEntry): SharedEntry {
    const shared = withChains(entry, entry.chains);
    this.#entries.set(key, shared);
    this.#shared.set(key, shared);
    return shared;
  }
}

function keyOf(addresses: readonly string[], port: number): string {
  return `${addresses[0]}_${port}`;
}

/** A listener with one chain, to a service, is the same one for all views, as long as the chain is. */
function newEntry(call: Call, spot: Spot, place: Place): ListenerEntry {
  const { addresses } = spot;
  const { port, binding } = call;
  const { isOpened } = binding;
  const added = chainsOf(call, spot, place);
  const make = (): ListenerEntry => {
    const detects = added.some((chain) => chain.kind === "http" && chain.sniffed);
    const protocol = detects ? "Unsupported" : port.protocol;
    const { taken, ...entry } = withChains({ addresses, port: port.port, isOpened, protocol, chains: [] }, added);
    return entry;
  };
  const [only] = added;
  if (only?.kind !== "tcp" || added.length > 1) return make();
  return kept(only.chain, `listener ${port.port}`, [isOpened, ...addresses], make);
}

/** Servers of these speak first, so waiting for the client's first bytes would wait for ever. */
function canShare(known: Protocol, added: Protocol): boolean {
  const speaksFirst = (protocol: Protocol) => protocol === "Mongo" || protocol === "MySQL";
  return known === added || !(speaksFirst(known) || speaksFirst(added));
}

function isTcp(protocol: Protocol): boolean {
  return !isHttp(protocol) && protocol !== "Unsupported" && protocol !== "UDP";
}

function httpEntry({ port, service, kind }: Call, [address = ""]: readonly string[], place: Place): HttpChainEntry {
  const isWildcard = address === place.wildcards[0];
  const isOwn = kind === "auto" && !isWildcard;
  const ofPort = isOwn ? ownRouteName(service.hostname, port.port) : sharedRouteName(port.port);
  return {
    kind: "http",
    routeName: port.port === 0 ? address : ofPort,
    sniffed: kind === "auto" || (isWildcard && port.protocol !== "HTTP_PROXY"),
    protocol: port.protocol,
  };
}

function chainsOf(call: Call, { addresses, ranges, isRange = ranges.length > 0 }: Spot, place: Place): ChainEntry[] {
  const { service, own, port, kind, listener } = call;
  const http = kind === "tcp" ? [] : [httpEntry(call, addresses, place)];
  if (kind === "http") return http;
  const isAnywhere = addresses[0] === place.wildcards[0];
  const isShared = own.length === 0 ? isAnywhere : isRange;
  const { virtualServices } = listener;
  const tcp = tcpChains(place.snapshot, place.view, { service, port, ranges, isShared, virtualServices });
  return [...tcp.map((chain): TcpChainEntry => ({ kind: "tcp", chain })), ...http];
}

const ANY: ChainMatch = { serverNames: [], ranges: [] };

function withChains(entry: ListenerEntry, chains: readonly ChainEntry[]): SharedEntry {
  const shared: SharedEntry = { ...entry, chains: [], taken: new Set() };
  addChains(shared, chains);
  return shared;
}

/** One chain for HTTP, and the others for what none before them takes. */
function addChains({ chains, taken }: SharedEntry, added: readonly ChainEntry[]): void {
  for (const entry of added) {
    if (entry.kind === "tcp") {
      const match = takeFree(taken, entry.chain);
      if (match !== undefined) chains.push(hasMatch(entry.chain, match) ? entry : withMatch(entry.chain, match));
    } else if (!chains.some(({ kind }) => kind === "http") && (entry.sniffed || takeFree(taken, ANY) !== undefined)) {
      chains.push(entry);
    }
  }
}

function hasMatch({ serverNames, ranges }: TcpChain, match: ChainMatch): boolean {
  return serverNames === match.serverNames && ranges === match.ranges;
}

function withMatch(chain: TcpChain, match: ChainMatch): TcpChainEntry {
  return { kind: "tcp", chain: { ...chain, ...match } };
}
