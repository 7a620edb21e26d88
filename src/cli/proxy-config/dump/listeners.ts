/** `proxy-config listener`. */
import type { JsonObject } from "@bufbuild/protobuf";
import { MeshError } from "#lib/mesh-error.ts";
import { formatGoTable } from "#lib/print/go-table.ts";
import type { ConfigDump } from "./dump.ts";
import { at, listAt, numberAt, objectAt, textAt, textsAt } from "./json.ts";
import { clusterText, describeInlineRoutes } from "./route-text.ts";

export interface ListenerFilter {
  readonly address?: string | undefined;
  readonly port?: number | undefined;
  /** `HTTP`, `TCP`, `HTTP+TCP` or `UNKNOWN`, in any case. */
  readonly type?: string | undefined;
}

const HTTP = "envoy.filters.network.http_connection_manager";
const TCP = "envoy.filters.network.tcp_proxy";
const BLACK_HOLE = "BlackHoleCluster";

/** The listeners of a dump that the filter lets through, as the dump has them. */
export function listenersOf(dump: ConfigDump, filter: ListenerFilter): readonly JsonObject[] {
  const section = dump.section("ListenersConfigDump");
  const all = [
    ...listAt(section, "dynamicListeners").flatMap((entry) => objectAt(entry, "activeState", "listener")),
    ...listAt(section, "staticListeners").flatMap((entry) => objectAt(entry, "listener")),
  ].map(({ "@type": _, ...listener }) => listener);
  if (all.length === 0) throw new MeshError("CONFIG_DUMP_INVALID", "The config dump has no listeners");
  return all.filter((listener) => isWantedListener(listener, filter));
}

/** Whether the filter lets a listener through. */
export function isWantedListener(listener: JsonObject, { address = "", port = 0, type = "" }: ListenerFilter): boolean {
  const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();
  return (
    (address === "" || addressesOf(listener).some((one) => isSame(one, address))) &&
    (port === 0 || portOf(listener) === port) &&
    (type === "" || isSame(typeOf(listener), type))
  );
}

/** The table, by port, address and type: with matches and destinations, or with types alone. */
export function formatListeners(
  listeners: readonly JsonObject[],
  { verbose, withNames = false }: { readonly verbose: boolean; readonly withNames?: boolean },
): string {
  const rows = listeners.toSorted(byPlace).flatMap((listener) => {
    const names = withNames ? [`listener/${textAt(listener, "name")}`] : [];
    const head = [...names, addressesOf(listener).join(","), String(portOf(listener))];
    if (!verbose) return [[...head, typeOf(listener)]];
    const chains = chainsOf(listener).map((chain) => ({ match: describeChainMatch(chain), to: destinationOf(chain) }));
    return chains
      .sort((one, other) => (one.to > other.to ? -1 : Number(one.to < other.to)))
      .map(({ match, to }) => [...head, match, to]);
  });
  const last = verbose ? ["MATCH", "DESTINATION"] : ["TYPE"];
  return formatGoTable([[...(withNames ? ["NAME"] : []), "ADDRESSES", "PORT", ...last], ...rows], 1);
}

function byPlace(one: JsonObject, other: JsonObject): number {
  const compare = (a: string, b: string) => (a < b ? -1 : Number(a > b));
  return (
    portOf(one) - portOf(other) ||
    compare(addressesOf(one)[0] ?? "", addressesOf(other)[0] ?? "") ||
    compare(typeOf(one), typeOf(other))
  );
}

function addressesOf(listener: JsonObject): readonly string[] {
  const first = textAt(listener, "address", "socketAddress", "address") || textAt(listener, "address", "pipe", "path");
  const more = listAt(listener, "additionalAddresses").map((one) => textAt(one, "address", "socketAddress", "address"));
  return [first, ...more];
}

function portOf(listener: JsonObject): number {
  return numberAt(listener, "address", "socketAddress", "portValue");
}

function chainsOf(listener: JsonObject): readonly JsonObject[] {
  return [...listAt(listener, "filterChains"), ...objectAt(listener, "defaultFilterChain")];
}

function typeOf(listener: JsonObject): string {
  const filters = chainsOf(listener).flatMap((chain) => listAt(chain, "filters"));
  const isHttp = filters.some(({ name }) => name === HTTP);
  const isTcp = filters.some((filter) => filter.name === TCP && !isBlackHole(filter));
  if (isHttp) return isTcp ? "HTTP+TCP" : "HTTP";
  return isTcp ? "TCP" : "UNKNOWN";
}

function isBlackHole(filter: JsonObject): boolean {
  return JSON.stringify(filter.typedConfig ?? "").includes(BLACK_HOLE);
}

/** Where the first filter leads that leads anywhere. */
function destinationOf(chain: JsonObject): string {
  for (const filter of listAt(chain, "filters")) {
    const { name, typedConfig } = filter;
    if (name === HTTP) {
      const [inline] = objectAt(typedConfig, "routeConfig");
      if (inline !== undefined) return describeInlineRoutes(inline);
      const route = textAt(typedConfig, "rds", "routeConfigName");
      return route === "" ? "HTTP" : `Route: ${route}`;
    }
    if (name === TCP && !isBlackHole(filter)) return clusterText(textAt(typedConfig, "cluster"));
  }
  return "Non-HTTP/Non-TCP";
}

/** Well-known lists of application protocols, in the order in which they are looked for. */
const PROTOCOLS: readonly (readonly [string, string])[] = [
  ["App: HTTP TLS", "http/1.0,http/1.1,h2c,istio-http/1.0,istio-http/1.1,istio-h2"],
  ["App: Istio HTTP Plain", "istio,istio-http/1.0,istio-http/1.1,istio-h2"],
  ["App: TCP TLS", "istio-peer-exchange,istio"],
  ["App: HTTP", "http/1.0,http/1.1,h2c"],
];

function describeChainMatch(chain: JsonObject): string {
  const match = at(chain, "filterChainMatch");
  const names = textsAt(match, "serverNames");
  const transport = textAt(match, "transportProtocol");
  const protocols = textsAt(match, "applicationProtocols").join(",");
  const known = PROTOCOLS.find(([, list]) => list === protocols)?.[0];
  const port = at(match, "destinationPort") === undefined ? "" : `:${numberAt(match, "destinationPort")}`;
  const ranges = listAt(match, "prefixRanges").map(
    (range) => `${textAt(range, "addressPrefix")}/${numberAt(range, "prefixLen")}`,
  );
  const parts = [
    names.length > 0 ? `SNI: ${names.join(",")}` : "",
    transport && `Trans: ${transport}`,
    protocols && (known ?? `App: ${protocols}`),
    ranges.length > 0 ? `Addr: ${ranges.join(",")}${port}` : port && `Addr: *${port}`,
  ];
  return parts.filter((part) => part !== "").join("; ") || "ALL";
}
