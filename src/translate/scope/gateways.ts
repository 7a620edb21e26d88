/** The servers of a router: all Gateways that select it, as one. */

import type { Gateway, GatewayServer } from "#config/kinds/gateway/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { oldestFirst } from "#config/terms/precedence.ts";
import { type Protocol, parseProtocol } from "#config/terms/protocol.ts";
import { isHttp } from "#model/service/service.ts";
import { gatewayRouteName, gatewayServerRouteName } from "../names/names.ts";
import { kept } from "../recipes/indexes.ts";
import type { ServiceTarget } from "../targets/service-targets.ts";
import type { Traits } from "../traits/traits.ts";

/** What decides the servers of a router. */
export interface RouterViewpoint {
  readonly key: string;
  /** The Gateways that select it, in order of precedence. */
  readonly gateways: readonly ConfigObject<Gateway>[];
  /** Its own services. */
  readonly targets: readonly ServiceTarget[];
  readonly traits: Traits;
}

/** One server of a Gateway. */
export interface RouterServer {
  readonly server: GatewayServer;
  /** `namespace/name` of its Gateway. */
  readonly gateway: string;
  /** `host`, or `namespace/host` to take virtual services of that namespace only. */
  readonly hosts: readonly string[];
  readonly protocol: Protocol;
  /** Speaks HTTP/3 beside HTTPS. */
  readonly speaksHttp3: boolean;
  /** Its routes; empty for servers that do not speak HTTP. */
  readonly routeName: string;
}

/** Servers that share a port and address. */
export interface RouterPort {
  readonly port: number;
  /** Empty for all addresses. */
  readonly bind: string;
  readonly protocol: Protocol;
  readonly servers: RouterServer[];
}

/** Ports in order of precedence, and the servers of each set of routes. */
export interface RouterServers {
  readonly ports: readonly RouterPort[];
  readonly byRouteName: ReadonlyMap<string, readonly RouterServer[]>;
}

/**
 * On one port and address there can be plain HTTP servers, which share their routes, or TLS servers, which are told apart by
 * server name; what does not fit what came first is left out. Equal views of the same Gateways have the same servers.
 */
export function routerServers(view: RouterViewpoint): RouterServers {
  const [first] = view.gateways;
  if (first === undefined) return mergedServers(view);
  const targets = view.targets.flatMap(({ service, port, targetPort }) => [service, port, targetPort]);
  return kept(first, `servers ${view.key}`, [...view.gateways, ...targets], () => mergedServers(view));
}

function mergedServers(view: RouterViewpoint): RouterServers {
  const merged: Merged = { ports: [], byRouteName: new Map(), plain: new Map(), names: new Set() };
  for (const gateway of [...view.gateways].sort(oldestFirst)) {
    for (const server of gateway.spec.servers ?? []) {
      const port = listeningPort(view, server.port.number);
      if (port < 1024 && view.traits.listener.unprivileged) continue;
      const made = routerServer(gateway, server, port);
      add(merged, { ...made, speaksHttp3: isHttpsServer(made) && takesUdp(view, server.port.number) }, port);
    }
  }
  return merged;
}

/** Clients reach UDP only where the router's own service has the port for it. */
function takesUdp({ traits, targets }: RouterViewpoint, called: number): boolean {
  return traits.listener.quic && targets.some(({ port }) => port.protocol === "UDP" && port.port === called);
}

/** A Gateway names the port that clients call; the router's own service tells where that leads. */
function listeningPort({ targets }: RouterViewpoint, called: number): number {
  const isTranslated = ({ service, port }: ServiceTarget) =>
    port.port === called && service.labels["experimental.istio.io/disable-gateway-port-translation"] === undefined;
  return targets.find(isTranslated)?.targetPort ?? called;
}

function routerServer(
  { metadata }: ConfigObject<Gateway>,
  server: GatewayServer,
  port: number,
): Omit<RouterServer, "speaksHttp3"> {
  const protocol = parseProtocol(server.port.protocol);
  return {
    server,
    gateway: `${metadata.namespace}/${metadata.name}`,
    hosts: completeHosts(server.hosts, metadata.namespace),
    protocol,
    routeName: routeNameOf(server, { protocol, port, gateway: metadata.name, namespace: metadata.namespace }),
  };
}

/** `./host` means the Gateway's namespace, and a `*` in its place any. */
function completeHosts(hosts: readonly string[], namespace: string): readonly string[] {
  if (hosts.includes("*/*")) return ["*"];
  return hosts.map((host) => {
    const [home, name] = host.split("/");
    if (name === undefined || home === undefined) return host;
    if (home === ".") return `${namespace}/${name}`;
    return home === "*" ? name : host;
  });
}

interface RouteOwner {
  readonly protocol: Protocol;
  readonly port: number;
  readonly gateway: string;
  readonly namespace: string;
}

function routeNameOf({ port, bind = "", tls }: GatewayServer, owner: RouteOwner): string {
  const { protocol, gateway, namespace } = owner;
  if (isHttp(protocol)) return gatewayRouteName(owner.port, bind);
  if (protocol !== "HTTPS" || isPassedThrough(tls)) return "";
  return gatewayServerRouteName({ port: port.number, portName: port.name, gateway, namespace, bind });
}

/** Whether TLS is passed on unopened. */
export function isPassedThrough(tls: GatewayServer["tls"]): boolean {
  return tls !== undefined && (tls.mode === undefined || tls.mode === "PASSTHROUGH" || tls.mode === "AUTO_PASSTHROUGH");
}

/** Whether the server ends TLS and speaks HTTP inside. */
export function isHttpsServer({ server, protocol }: Pick<RouterServer, "server" | "protocol">): boolean {
  return protocol === "HTTPS" && server.tls !== undefined && !isPassedThrough(server.tls);
}

/** The servers so far, and what they have taken. */
interface Merged {
  readonly ports: RouterPort[];
  readonly byRouteName: Map<string, RouterServer[]>;
  /** The first plain-text server of each port. */
  readonly plain: Map<number, RouterPort>;
  /** Server names of TLS, with port and address. */
  readonly names: Set<string>;
}

function add(merged: Merged, added: RouterServer, port: number): void {
  const { server, protocol, routeName } = added;
  const bind = server.bind ?? "";
  if (server.tls !== undefined && !claim(merged.names, added, `${port}/${bind}`)) return;
  const isTls = server.tls !== undefined && !isHttp(protocol);
  const plain = merged.plain.get(port);
  if (plain !== undefined && plain.bind === bind) {
    if (!isHttp(protocol) || !isHttp(plain.protocol)) return;
    plain.servers.push(added);
  } else {
    if (isTls && routeName !== "" && merged.byRouteName.has(routeName)) return;
    const same = merged.ports.find((one) => one.port === port && one.bind === bind && one.protocol === protocol);
    if (same !== undefined && isTls) same.servers.push(added);
    else open(merged, { port, bind, protocol, servers: [added] }, isTls);
  }
  if (routeName !== "") merged.byRouteName.set(routeName, [...(merged.byRouteName.get(routeName) ?? []), added]);
}

function open({ ports, plain }: Merged, opened: RouterPort, isTls: boolean): void {
  ports.push(opened);
  if (!isTls) plain.set(opened.port, opened);
}

/** A server with a host that another has on the same address is left out as a whole. */
function claim(names: Set<string>, { hosts }: RouterServer, place: string): boolean {
  const claimed = hosts.map((host) => `${place}/${host.toLowerCase()}`);
  if (claimed.some((name) => names.has(name))) return false;
  for (const name of claimed) names.add(name);
  return true;
}
