/** A proxy configuration without the fields that say what holds anyway. */
import { isDeepStrictEqual } from "node:util";
import { fieldNames, inFieldOrder } from "#config/mesh/message-value.ts";
import { DEFAULT_PROXY_CONFIG } from "#config/proxy-config/proxy-config.ts";
import { isRecord } from "#lib/json/is-record.ts";

const DEFAULTS: Readonly<Record<string, unknown>> = DEFAULT_PROXY_CONFIG;

/** To protobuf an empty map is the same as none. An empty message is not: `tracing: {}` replaces the tracing below it. */
const MAPS: ReadonlySet<string> = new Set(["proxyMetadata", "runtimeValues"]);

/** In protobuf JSON: fields in the order of the message, keys of maps sorted. */
export function cleanProxyConfig(json: unknown): unknown {
  if (!isRecord(json)) return json;
  const set = fieldNames("ProxyConfig").filter((name) => json[name] !== undefined);
  const kept = set
    .map((name) => [name, json[name]] as const)
    .filter(([name, value]) => !(name in DEFAULTS && isDeepStrictEqual(value, DEFAULTS[name])))
    .filter(([name, value]) => !(MAPS.has(name) && isRecord(value) && Object.keys(value).length === 0));
  return inFieldOrder("ProxyConfig", Object.fromEntries(kept));
}
