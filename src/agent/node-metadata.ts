/**
 * Node metadata that configuration and environment give. Keys that the control plane knows have a type; the others go to
 * Envoy as they are. Pure.
 */
import type { Env } from "#lib/env/env-table.ts";
import { parseGoBool } from "#lib/go/go-bool.ts";
import { goFields } from "#lib/go/go-fields.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { parseJson } from "#lib/json/parse-json.ts";
import type { Labels } from "./node.ts";

/** Metadata by key. */
export type Metadata = Readonly<Record<string, unknown>>;

export interface GivenMetadata {
  /** As it was given. */
  readonly raw: Metadata;
  /** Of keys that the control plane knows, in the form in which it reads them; values that say nothing are left out. */
  readonly known: Metadata;
  /** Values that are not of their key's type. */
  readonly problems: readonly string[];
  /** Variables that could not be read at all. */
  readonly warnings: readonly string[];
}

const META_PREFIX = "ISTIO_META_";
const META_JSON_PREFIX = "ISTIO_METAJSON_";
const STATIC_LABELS = `${META_JSON_PREFIX}LABELS`;

// biome-ignore format: a list of names
const TEXT_KEYS = [
  "APP_CONTAINERS", "AUTO_REGISTER_GROUP", "BASE", "CLOUDRUN_ADDR", "CLUSTER_ID", "GENERATOR", "HTTP10",
  "HTTP_PROXY_PORT", "IDLE_TIMEOUT", "INTERCEPTION_MODE", "ISTIO_PROXY_SHA", "ISTIO_REVISION", "ISTIO_VERSION",
  "MESH_ID", "NAME", "NAMESPACE", "NETWORK", "NODE_NAME", "OWNER", "REQUESTED_NETWORK_VIEW", "SERVICE_ACCOUNT",
  "STS_PORT", "TLS_CLIENT_CERT_CHAIN", "TLS_CLIENT_KEY", "TLS_CLIENT_ROOT_CERT", "TLS_SERVER_CERT_CHAIN",
  "TLS_SERVER_KEY", "TLS_SERVER_ROOT_CERT", "UNPRIVILEGED_POD", "WORKLOAD_ENTRY", "WORKLOAD_NAME",
];
// biome-ignore format: a list of names
const FLAG_KEYS = [
  "DISABLE_HBONE_SEND", "DNS_AUTO_ALLOCATE", "DNS_CAPTURE", "ENABLE_HBONE", "INBOUND_LISTENER_EXACT_BALANCE",
  "OUTBOUND_LISTENER_EXACT_BALANCE",
];
const MAP_KEYS = ["ANNOTATIONS", "LABELS", "PLATFORM_METADATA", "STATIC_LABELS"];
/** Keys that the agent sets itself: what is given must be of their type, and has no effect. */
const OWN_TEXT_KEYS = ["INSTANCE_IPS", "OUTLIER_LOG_PATH", "WORKLOAD_IDENTITY_SOCKET_FILE"];
const OWN_FLAG_KEYS = ["ENVOY_SKIP_DEPRECATED_LOGS", "EXIT_ON_ZERO_ACTIVE_CONNECTIONS", "METADATA_DISCOVERY"];
const OWN_NUMBER_KEYS = ["ENVOY_PROMETHEUS_PORT", "ENVOY_STATUS_PORT"];

/** Gives the value in the control plane's form, nothing when it says nothing, or what it must be. */
type Reader = (value: unknown) => { readonly value?: unknown } | { readonly wanted: string };

const READERS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ...TEXT_KEYS.map((key) => [key, readText] as const),
  ...FLAG_KEYS.map((key) => [key, readFlag] as const),
  ...MAP_KEYS.map((key) => [key, readMap] as const),
  ["POD_PORTS", readPodPorts],
  ...OWN_TEXT_KEYS.map((key) => [key, withoutEffect(readText)] as const),
  ...OWN_FLAG_KEYS.map((key) => [key, withoutEffect(readFlag)] as const),
  ...OWN_NUMBER_KEYS.map((key) => [key, readNumber] as const),
  ["PILOT_SAN", readTextList],
  ["PROXY_CONFIG", readObject],
]);

/** `ISTIO_META_*` of configuration and environment, then the objects of `ISTIO_METAJSON_*`; the last one counts. */
export function givenMetadata(proxyMetadata: Labels, env: Env): GivenMetadata {
  const warnings: string[] = [];
  const entries = new Map<string, unknown>();
  for (const [name, value] of [...Object.entries(proxyMetadata), ...Object.entries(env)]) {
    if (name.startsWith(META_PREFIX)) entries.set(name.slice(META_PREFIX.length), value);
  }
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(META_JSON_PREFIX)) continue;
    const object = jsonObject(name, value ?? "", warnings);
    for (const [key, item] of Object.entries(object)) entries.set(key, item);
    if (name === STATIC_LABELS) warnings.push(...wrongLabels(object));
  }
  const raw = Object.fromEntries(entries);
  return { raw, ...knownMetadata(raw), warnings };
}

/** Labels of ISTIO_METAJSON_LABELS. A value that is no text is empty, as for Istio's agent. */
export function staticLabels(json: string | undefined): Labels {
  const entries = Object.entries(jsonObject(STATIC_LABELS, json ?? "", []));
  return Object.fromEntries(entries.map(([key, value]) => [key, typeof value === "string" ? value : ""]));
}

function wrongLabels(labels: Metadata): string[] {
  const wrong = Object.entries(labels).filter(([, value]) => value !== null && typeof value !== "string");
  return wrong.map(([key, value]) => `${STATIC_LABELS}: ${key} must be text, not ${shown(value)}`);
}

/** Keys are known in any mix of cases, as to Go. */
function knownMetadata(raw: Metadata): Pick<GivenMetadata, "known" | "problems"> {
  const known: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const given of Object.keys(raw).sort()) {
    const key = given.toUpperCase();
    const result = raw[given] === null ? undefined : READERS.get(key)?.(raw[given]);
    if (result === undefined) continue;
    if ("wanted" in result) problems.push(`${META_PREFIX}${given} must be ${result.wanted}, not ${shown(raw[given])}`);
    else if (result.value !== undefined) known[key] = result.value;
  }
  return { known, problems };
}

function withoutEffect(read: Reader): Reader {
  return (value) => {
    const result = read(value);
    return "wanted" in result ? result : {};
  };
}

function readNumber(value: unknown): ReturnType<Reader> {
  return Number.isInteger(value) ? {} : { wanted: "a number" };
}

function readTextList(value: unknown): ReturnType<Reader> {
  const isList = Array.isArray(value) && value.every((item) => typeof item === "string");
  return isList ? {} : { wanted: "a list of texts" };
}

function readObject(value: unknown): ReturnType<Reader> {
  return isRecord(value) ? {} : { wanted: "an object" };
}

function readText(value: unknown): ReturnType<Reader> {
  if (typeof value !== "string") return { wanted: "text" };
  return value === "" ? {} : { value };
}

function readFlag(value: unknown): ReturnType<Reader> {
  const flag = typeof value === "string" ? parseGoBool(value) : undefined;
  if (flag === undefined) return { wanted: "true or false" };
  return flag ? { value: "true" } : {};
}

function readMap(value: unknown): ReturnType<Reader> {
  const isMap = isRecord(value) && Object.values(value).every((item) => typeof item === "string");
  return isMap ? { value } : { wanted: "a map of texts" };
}

/** A list of ports as JSON in a text. */
function readPodPorts(value: unknown): ReturnType<Reader> {
  const given = typeof value === "string" ? parsed(value) : undefined;
  if (given === null) return {};
  const ports = Array.isArray(given) ? given.map(podPort) : [undefined];
  if (ports.includes(undefined)) return { wanted: "a JSON list of ports" };
  return ports.length === 0 ? {} : { value: JSON.stringify(ports) };
}

/** In the form in which Istio's agent writes it; undefined for what is none. */
function podPort(given: unknown): object | undefined {
  const fields = goFields(given);
  const [name, containerPort, protocol] = [fields?.name ?? "", fields?.containerport ?? 0, fields?.protocol ?? ""];
  const isPort = typeof name === "string" && Number.isSafeInteger(containerPort) && typeof protocol === "string";
  if (fields === undefined || !isPort) return undefined;
  return { ...(name === "" ? {} : { name }), containerPort, protocol };
}

function jsonObject(name: string, json: string, warnings: string[]): Metadata {
  const value = parsed(json);
  if (isRecord(value)) return value;
  if (json !== "" && value !== null) warnings.push(`${name} must be a JSON object, not ${json}`);
  return {};
}

function parsed(json: string): unknown {
  try {
    return parseJson(json);
  } catch {
    return undefined; // whoever asks says what it must be
  }
}

function shown(value: unknown): string {
  return JSON.stringify(value) ?? String(value);
}
