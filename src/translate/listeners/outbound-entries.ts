/**
 * Which outbound listeners there are, and what each has to tell apart. HTTP services of a port share one listener on all
 * addresses and are told apart by their host name; other services have a listener on their own address. Where both meet on
 * one address, the first bytes of a connection decide.
 */
import { isIP } from "node:net";
import type { Steps } from "#lib/async/steps.ts";
import { endpointPort } from "#model/endpoint.ts";
import { isHttp, type Protocol, type Service, type ServicePort, serviceKey } from "#model/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { HTTP_PROXY_ROUTES, ownRouteName, sharedRouteName } from "../names.ts";
import { isOneDestination, localAddresses, serviceAddresses, wildcardAddresses } from "../scope/addresses.ts";
import { type EgressListener, scopeOf } from "../scope/egress.ts";
import type { OutboundView } from "../views.ts";
import { UNIX_PREFIX } from "./address.ts";
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

/** One listener with all that comes to its address. */
export interface ListenerEntry {
  readonly addresses: readonly string[];
  readonly port: number;
  /** Opens its port, instead of being handed connections. */
  readonly isOpened: boolean;
  /** Was made by a listener of a Sidecar for its own port: services of the others do not come to it. */
  isClosed: boolean;
  /** What the listener takes so far; `Unsupported` once it has to detect it. */
  protocol: Protocol;
  readonly chains: (HttpChainEntry | TcpChainEntry)[];
  /** Which connections the TCP chains take. */
  readonly taken: Taken;
}

/** How a port takes part: by HTTP, by any protocol, or by detecting which. */
type Kind = "http" | "tcp" | "auto";

/** A service port, and the way out through which it is called. */
interface Call {
  readonly service: Service;
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

interface Candidate extends Call {
  readonly addresses: readonly string[];
  readonly ranges: readonly string[];
  /** It is for a range of addresses, though the listener is on another. */
  readonly isRange?: boolean;
}

/** The listeners of a view, by address and port. Earlier services win conflicts that cannot be solved by detection. */
export function* outboundEntries(snapshot: Snapshot, view: OutboundView): Steps<ReadonlyMap<string, ListenerEntry>> {
  const entries = new Map<string, ListenerEntry>();
  for (const listener of scopeOf(snapshot, view).listeners) {
    if (listener.port === undefined) for (const entry of entries.values()) entry.isClosed = true;
    for (const call of callsOf(listener, snapshot, view)) {
      for (const candidate of candidates(snapshot, view, call)) {
        if (!isReserved(candidate, snapshot, view)) addTo(entries, candidate, { snapshot, view });
      }
      yield;
    }
  }
  const proxy = httpProxy(view);
  return proxy === undefined ? entries : entries.set(`${proxy.addresses[0]}_${proxy.port}`, proxy);
}

/** Applications that are told to use a proxy for HTTP find one here, if somebody says where. */
function httpProxy({ traits }: OutboundView): ListenerEntry | undefined {
  const { httpProxyPort: port, ipMode } = traits.listener;
  if (port === 0) return undefined;
  const protocol = "HTTP_PROXY";
  const chain: HttpChainEntry = { kind: "http", routeName: HTTP_PROXY_ROUTES, sniffed: false, protocol };
  const addresses = localAddresses(ipMode);
  return { addresses, port, isOpened: true, isClosed: true, protocol, chains: [chain], taken: new Set() };
}

function* callsOf(listener: EgressListener, { features }: Snapshot, view: OutboundView): Generator<Call> {
  const binding = bindingOf(listener, view);
  for (const service of listener.services) {
    if (service.resolution === "alias") continue;
    for (const port of listener.port === undefined ? service.ports : [listener.port]) {
      const kind = kindOf(port.protocol, features.sniffOutbound);
      if (kind !== undefined) yield { service, port, kind, listener, binding };
    }
  }
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
function candidates(snapshot: Snapshot, view: OutboundView, call: Call): readonly Candidate[] {
  const { ipMode } = view.traits.listener;
  const wildcards = wildcardAddresses(ipMode);
  if (call.binding.addresses.length > 0) {
    const { addresses } = call.binding;
    const [first = "", ...others] = addressesOf(call.service, view);
    const own = isOneDestination(call.service) ? [first] : [first, ...others];
    return own.map((address) => ({ ...call, addresses, ranges: [], isRange: address.includes("/") }));
  }
  if (call.kind === "http") return [{ ...call, addresses: wildcards, ranges: [] }];
  const own = addressesOf(call.service, view);
  if (own.length === 0) return withoutAddress(snapshot, view, call);
  const groups = isOneDestination(call.service) ? [own] : own.map((address) => [address]);
  return groups.map((addresses) =>
    addresses[0]?.includes("/")
      ? { ...call, addresses: wildcards, ranges: addresses }
      : { ...call, addresses, ranges: [] },
  );
}

function addressesOf(service: Service, { traits }: OutboundView): readonly string[] {
  return serviceAddresses(service, { ...traits.listener, autoAddresses: traits.autoAddresses });
}

/** A headless service is called by the addresses of its endpoints; any other host without an address by any address. */
function withoutAddress(snapshot: Snapshot, view: OutboundView, call: Call): readonly Candidate[] {
  const { service, port, listener } = call;
  const { ipMode } = view.traits.listener;
  const wildcards = service.registry === "External" ? wildcardAddresses(ipMode) : wildcardAddresses(ipMode).slice(0, 1);
  const anywhere: Candidate = { ...call, addresses: wildcards, ranges: [] };
  if (service.resolution !== "passthrough" || listener.port !== undefined) return [anywhere];
  const endpoints = snapshot.endpoints.get(serviceKey(service))?.endpoints ?? [];
  const instances = endpoints.filter((endpoint) => endpointPort(endpoint, port) !== undefined);
  const mayHaveSome = service.registry === "Kubernetes" || service.selector !== undefined;
  if (instances.length === 0 && !mayHaveSome) return [anywhere];
  const reachable = instances.filter(({ address }) => isIP(address) !== 0);
  return reachable.map(({ address, addresses = [address] }) => ({ ...call, addresses, ranges: [] }));
}

/** Ports that Envoy itself listens on; two listeners cannot have one address. */
function isReserved({ addresses, port, binding }: Candidate, { mesh }: Snapshot, view: OutboundView): boolean {
  const { ipMode, reservedPorts, unprivileged } = view.traits.listener;
  if (binding.isOpened && unprivileged && port.port > 0 && port.port < 1024) return true;
  const taken = [...reservedPorts, mesh.proxyListenPort, mesh.proxyInboundListenPort];
  return addresses[0] === wildcardAddresses(ipMode)[0] && taken.includes(port.port);
}

interface Place {
  readonly snapshot: Snapshot;
  readonly view: OutboundView;
}

function addTo(entries: Map<string, ListenerEntry>, candidate: Candidate, place: Place): void {
  const { addresses, port, kind } = candidate;
  const key = `${addresses[0]}_${port.port}`;
  const known = entries.get(key);
  if (known?.isClosed) return;
  if (known === undefined || port.protocol === "HTTP_PROXY") {
    entries.set(key, newEntry(candidate, place));
    return;
  }
  const isFirstOfKind = kind === "http" ? isTcp(known.protocol) : kind === "tcp" || known.protocol !== "Unsupported";
  if (!isFirstOfKind || !canShare(known.protocol, port.protocol)) return;
  if (kind === "auto" && isHttp(known.protocol)) {
    entries.set(key, newEntry(candidate, place));
    return;
  }
  addChains(known, chainsOf(candidate, place));
  if (!(kind === "tcp" && isTcp(known.protocol))) known.protocol = "Unsupported";
}

function newEntry(candidate: Candidate, place: Place): ListenerEntry {
  const { addresses, port, binding } = candidate;
  const added = chainsOf(candidate, place);
  const detects = added.some((chain) => chain.kind === "http" && chain.sniffed);
  const protocol = detects ? "Unsupported" : port.protocol;
  const entry: ListenerEntry = {
    addresses,
    port: port.port,
    isOpened: binding.isOpened,
    isClosed: false,
    protocol,
    chains: [],
    taken: new Set(),
  };
  addChains(entry, added);
  return entry;
}

/** Servers of these speak first, so waiting for the client's first bytes would wait for ever. */
function canShare(known: Protocol, added: Protocol): boolean {
  const speaksFirst = (protocol: Protocol) => protocol === "Mongo" || protocol === "MySQL";
  return known === added || !(speaksFirst(known) || speaksFirst(added));
}

function isTcp(protocol: Protocol): boolean {
  return !isHttp(protocol) && protocol !== "Unsupported" && protocol !== "UDP";
}

function httpEntry({ addresses, port, service, kind }: Candidate, view: OutboundView): HttpChainEntry {
  const isWildcard = addresses[0] === wildcardAddresses(view.traits.listener.ipMode)[0];
  const isOwn = kind === "auto" && !isWildcard;
  const ofPort = isOwn ? ownRouteName(service.hostname, port.port) : sharedRouteName(port.port);
  return {
    kind: "http",
    routeName: port.port === 0 ? (addresses[0] ?? "") : ofPort,
    sniffed: kind === "auto" || (isWildcard && port.protocol !== "HTTP_PROXY"),
    protocol: port.protocol,
  };
}

function chainsOf(candidate: Candidate, { snapshot, view }: Place): ListenerEntry["chains"] {
  const { service, port, ranges, addresses, kind, listener } = candidate;
  const http = kind === "tcp" ? [] : [httpEntry(candidate, view)];
  if (kind === "http") return http;
  const [own] = addressesOf(service, view);
  const isAnywhere = addresses[0] === wildcardAddresses(view.traits.listener.ipMode)[0];
  const isRange = candidate.isRange ?? ranges.length > 0;
  const isShared = own === undefined ? isAnywhere : isRange;
  const { virtualServices } = listener;
  const tcp = tcpChains(snapshot, view, { service, port, ranges, isShared, virtualServices });
  return [...tcp.map((chain): TcpChainEntry => ({ kind: "tcp", chain })), ...http];
}

const ANY: ChainMatch = { serverNames: [], ranges: [] };

/** One chain for HTTP, and the others for what none before them takes. */
function addChains({ chains, taken }: ListenerEntry, added: ListenerEntry["chains"]): void {
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
