/** `proxy-status`: which types each connected proxy has asked for, and whether it has what was sent. */
import type { JsonObject } from "@bufbuild/protobuf";
import { isRecord } from "#lib/json/is-record.ts";
import { formatGoTable } from "#lib/print/go-table.ts";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  EXTENSION_TYPE,
  LISTENER_TYPE,
  ROUTE_TYPE,
  shortTypeName,
} from "#protocol/messages/type-urls.ts";
import { listAt, textAt } from "../proxy-config/dump/json.ts";

export interface ProxyStatus {
  /** `name.namespace` */
  readonly proxy: string;
  readonly cluster: string;
  readonly istiod: string;
  readonly version: string;
  readonly namespace: string;
  /** `SYNCED`, `STALE`, `NOT SENT`, `ERROR` or `IGNORED` by type URL. */
  readonly types: ReadonlyMap<string, string>;
}

/** The order of the types that all proxies have; others follow by name. */
const CORE_TYPES = [CLUSTER_TYPE, LISTENER_TYPE, ENDPOINT_TYPE, ROUTE_TYPE];
const IGNORED = "IGNORED";

/** One line for each proxy: what it has asked for. */
export function formatProxyStatuses(statuses: readonly ProxyStatus[]): string {
  const types = allTypes(statuses);
  const rows = inOrder(statuses).map((status) => {
    const asked = types.filter((type) => (status.types.get(type) ?? IGNORED) !== IGNORED).map(upperName);
    const list = asked.length === 0 ? "0" : `${asked.length} (${asked.join(",")})`;
    return [status.proxy, status.cluster, status.istiod, status.version, list];
  });
  return formatGoTable([["NAME", "CLUSTER", "ISTIOD", "VERSION", "SUBSCRIBED TYPES"], ...rows], 5);
}

/** One line for each proxy: the state of every type. */
export function formatProxyStatusesInFull(statuses: readonly ProxyStatus[]): string {
  const types = [...new Set([...allTypes(statuses), ...CORE_TYPES, EXTENSION_TYPE])].sort();
  const rows = inOrder(statuses).map((status) => [
    status.proxy,
    status.cluster,
    ...types.map((type) => status.types.get(type) ?? IGNORED),
    status.istiod,
    status.version,
  ]);
  return formatGoTable([["NAME", "CLUSTER", ...types.map(upperName), "ISTIOD", "VERSION"], ...rows], 5);
}

/** The same as data. */
export function proxyStatusData(statuses: readonly ProxyStatus[]): readonly object[] {
  return inOrder(statuses).map(({ types, ...status }) => ({
    ...status,
    types: Object.fromEntries([...types].map(([type, state]) => [upperName(type), state])),
  }));
}

/** From a `ClientConfig`, in which control planes tell istioctl of a proxy. */
export function statusOfClient(client: JsonObject, istiod: string, now: number): ProxyStatus {
  const metadata = client.node;
  const configs = listAt(client, "genericXdsConfigs");
  return {
    proxy: textAt(client, "node", "id"),
    cluster: textAt(metadata, "metadata", "CLUSTER_ID"),
    istiod,
    version: textAt(metadata, "metadata", "ISTIO_VERSION"),
    namespace: textAt(metadata, "metadata", "NAMESPACE"),
    types: new Map(
      configs.length > 0
        ? configs.map((config) => [textAt(config, "typeUrl"), stateOf(config, now)] as const)
        : listAt(client, "xdsConfig").flatMap(olderState),
    ),
  };
}

/** From a row of the page `/debug/syncz`. */
export function statusOfSync(row: unknown, istiod: string): ProxyStatus {
  const { proxy = "", cluster_id: cluster = "", istio_version: version = "", resources } = isRecord(row) ? row : {};
  const name = String(proxy);
  return {
    proxy: name,
    cluster: String(cluster),
    istiod,
    version: String(version),
    namespace: name.slice(name.lastIndexOf(".") + 1),
    types: new Map(
      Object.entries(isRecord(resources) ? resources : {}).map(([type, state]) => {
        const { sent = "", acked = "", lastError = "" } = isRecord(state) ? state : {};
        if (lastError !== "") return [type, "ERROR"];
        if (sent === "") return [type, "NOT SENT"];
        return [type, sent === acked ? "SYNCED" : "STALE"];
      }),
    ),
  };
}

function stateOf(config: JsonObject, now: number): string {
  const status = textAt(config, "configStatus") || "UNKNOWN";
  if (status === "UNKNOWN") return IGNORED;
  if (status === "NOT_SENT") return "NOT SENT";
  const updated = Date.parse(textAt(config, "lastUpdated"));
  return Number.isNaN(updated) ? status : `${status} (${ageText(now - updated)})`;
}

const OLDER_FIELDS: Readonly<Record<string, string>> = {
  clusterConfig: CLUSTER_TYPE,
  listenerConfig: LISTENER_TYPE,
  endpointConfig: ENDPOINT_TYPE,
  routeConfig: ROUTE_TYPE,
};

function olderState(config: JsonObject): readonly (readonly [string, string])[] {
  const field = Object.keys(OLDER_FIELDS).find((name) => name in config);
  const status = textAt(config, "status") || "UNKNOWN";
  const state = status === "UNKNOWN" ? IGNORED : status.replace("NOT_SENT", "NOT SENT");
  return field === undefined ? [] : [[OLDER_FIELDS[field] ?? "", state]];
}

/** As Kubernetes tools write an age: two units while that says something. */
function ageText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [minutes, hours, days] = [seconds / 60, seconds / 3600, seconds / 86_400].map(Math.floor) as [
    number,
    number,
    number,
  ];
  const pair = (whole: number, unit: string, rest: number, restUnit: string) =>
    rest === 0 ? `${whole}${unit}` : `${whole}${unit}${rest}${restUnit}`;
  if (seconds < 120) return `${seconds}s`;
  if (minutes < 10) return pair(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return `${minutes}m`;
  if (hours < 8) return pair(hours, "h", minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  if (days < 8) return pair(days, "d", hours % 24, "h");
  if (days < 730) return `${days}d`;
  return days < 2920 ? pair(Math.floor(days / 365), "y", days % 365, "d") : `${Math.floor(days / 365)}y`;
}

function allTypes(statuses: readonly ProxyStatus[]): readonly string[] {
  const seen = new Set(statuses.flatMap(({ types }) => [...types.keys()]));
  return [
    ...CORE_TYPES.filter((type) => seen.has(type)),
    ...[...seen].filter((type) => !CORE_TYPES.includes(type)).sort(),
  ];
}

function inOrder(statuses: readonly ProxyStatus[]): readonly ProxyStatus[] {
  return statuses.toSorted((one, other) => (one.proxy < other.proxy ? -1 : Number(one.proxy > other.proxy)));
}

function upperName(type: string): string {
  const short = shortTypeName(type);
  return short === "other" ? type : short.toUpperCase();
}
