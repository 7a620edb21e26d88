/** A proxy configuration without the fields that say what holds anyway. */
import { isDeepStrictEqual } from "node:util";
import { fieldNames, inFieldOrder } from "#config/mesh/message-value.ts";
import { DEFAULT_PROXY_CONFIG } from "#config/proxy-config.ts";
import { isRecord } from "#lib/is-record.ts";

const DEFAULTS: Readonly<Record<string, unknown>> = DEFAULT_PROXY_CONFIG;

/** In protobuf JSON: fields in the order of the message, keys of maps sorted. */
export function cleanProxyConfig(json: unknown): unknown {
  if (!isRecord(json)) return json;
  const set = fieldNames("ProxyConfig").filter((name) => json[name] !== undefined);
  const kept = set
    .map((name) => [name, json[name]] as const)
    .filter(([name, value]) => !(name in DEFAULTS && isDeepStrictEqual(value, DEFAULTS[name])) && !isEmptyMap(value));
  return inFieldOrder("ProxyConfig", Object.fromEntries(kept));
}

function isEmptyMap(value: unknown): boolean {
  return isRecord(value) && Object.keys(value).length === 0;
}
