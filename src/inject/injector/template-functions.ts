/** Functions that Istio gives to injection templates, besides those of Go and Sprig. */

import { plain } from "@mizzen/go-template/format";
import { textArgument as text } from "@mizzen/go-template/functions";
import { SPRIG_FUNCTIONS } from "@mizzen/go-template/sprig";
import { CallError } from "@mizzen/go-template/template-error";
import { type Callable, fromValue, isList, Struct, TextMap, toValue, type Value } from "@mizzen/go-template/value";
import { yamlText } from "@mizzen/go-template/yaml-text";
import { durationText } from "#config/mesh/message-value.ts";
import { goJson } from "../json/go-json.ts";
import { cleanProxyConfig } from "../mesh/clean-proxy-config.ts";
import { PROXY_CONTAINER } from "../pod/pod.ts";

/** All functions of injection templates. `environment` answers `env`. */
export function templateFunctions(environment: Readonly<Record<string, string>>): Readonly<Record<string, Callable>> {
  return {
    ...SPRIG_FUNCTIONS,
    ...ISTIO_FUNCTIONS,
    env: (name, fallback) => {
      const key = text(name);
      return (Object.hasOwn(environment, key) ? environment[key] : "") || fallback;
    },
  };
}

const ISTIO_FUNCTIONS: Readonly<Record<string, Callable>> = {
  annotation: (metadata, name, fallback) => {
    const value = annotationsOf(metadata).entries.get(text(name));
    return value ?? plain(fallback);
  },
  appendMultusNetwork: (existing, network) => appendMultusNetwork(text(existing), text(network)),
  applicationPorts: (containers) => portsOf(containers, (name) => name !== PROXY_CONTAINER),
  contains: (needle, haystack) => text(haystack).includes(text(needle)),
  excludeInboundPort: (port, excluded) => excludeInboundPort(plain(port), text(excluded)),
  excludeInterfaces: (names) => text(names),
  formatDuration: durationText,
  fromJSON: (value) => {
    try {
      return toValue(JSON.parse(text(value)));
    } catch {
      return "{}"; // as Istio answers to what is no JSON
    }
  },
  includeInboundPorts: (containers) => portsOf(containers, () => true),
  indent: (spaces, source) => text(source).replaceAll("\n", `\n${" ".repeat(Number(spaces))}`),
  kubevirtInterfaces: (names) => text(names),
  omitNil: (value) => withoutNil(value) ?? null,
  protoToJSON: (message) => protoJson(message),
  structToJSON: (value) => (value === null || value === undefined ? "{}" : goJson(fromValue(value))),
  toYaml: (value) => yamlText(fromValue(value)),
  valueOrDefault: (value, fallback) => (value === "" || value === null || value === undefined ? fallback : value),
};

/** A network of the Multus plugin put behind those that a pod asks for, in the form that the pod uses. */
export function appendMultusNetwork(existing: string, network: string): string {
  if (existing === "") return network;
  const end = existing.lastIndexOf("]");
  if (end < 0) {
    const isThere = existing.split(",").some((name) => name.trim() === network);
    return isThere ? existing : `${existing}, ${network}`;
  }
  const [name = "", namespace = ""] = network.split("/").reverse();
  const networks = networksOf(existing);
  const isThere = networks?.some((one) => one.name === name && (one.namespace ?? "") === namespace);
  if (networks === undefined || isThere) return existing;
  const added = namespace === "" ? `{"name": "${name}"}` : `{"name": "${name}", "namespace": "${namespace}"}`;
  return `${existing.slice(0, end)}, ${added}${existing.slice(end)}`;
}

function networksOf(json: string): readonly { readonly name?: unknown; readonly namespace?: unknown }[] | undefined {
  try {
    const networks: unknown = JSON.parse(json);
    return Array.isArray(networks) ? networks : undefined;
  } catch {
    return undefined; // what is not understood stays as it is
  }
}

/** A port put behind those that are excluded already; 0 is no port. */
function excludeInboundPort(port: string, excluded: string): string {
  const added = port.trim();
  if (added === "" || added === "0") return excluded;
  const ports = excluded.split(",");
  if (ports.includes(added)) return excluded;
  return [...ports.map((one) => one.trim()).filter((one) => one !== ""), added].join(",");
}

/** Data without null, and without what is empty once its nulls are gone. */
export function withoutNil(value: Value): Value | undefined {
  if (value === null || value === undefined) return undefined;
  if (isList(value)) {
    const items = value.map(withoutNil);
    return changed(items, value) ? nonEmptyList(items.filter((item) => item !== undefined)) : value;
  }
  if (typeof value !== "object" || value instanceof Struct || value instanceof TextMap) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, withoutNil(item)] as const);
  const kept = entries.filter(([, item]) => item !== undefined);
  if (kept.length === entries.length) return Object.fromEntries(kept);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

function changed(items: readonly Value[], before: readonly Value[]): boolean {
  return items.some((item, index) => item !== before[index]);
}

function nonEmptyList(items: readonly Value[]): Value | undefined {
  return items.length === 0 ? undefined : items;
}

function annotationsOf(metadata: Value): TextMap {
  const annotations = metadata instanceof Struct ? metadata.fields.get("Annotations") : undefined;
  if (annotations instanceof TextMap) return annotations;
  throw new CallError("needs the metadata of an object");
}

/** Ports that carry streams; proxies take no others. */
function portsOf(containers: Value, isWanted: (name: Value) => boolean): string {
  if (!isList(containers)) return "";
  const ports = containers.flatMap((container) => {
    if (!(container instanceof Struct) || !isWanted(container.fields.get("Name"))) return [];
    const list = container.fields.get("Ports") ?? null;
    return isList(list) ? list : [];
  });
  return ports
    .filter((port) => port instanceof Struct && !["UDP", "SCTP"].includes(String(port.fields.get("Protocol"))))
    .map((port) => (port instanceof Struct ? plain(port.fields.get("ContainerPort")) : ""))
    .join(",");
}

/** A proxy configuration is written without what equals the defaults: pods stay readable. */
function protoJson(message: Value): string {
  const json = fromValue(message);
  if (json === null) return "{}";
  const isProxyConfig = message instanceof Struct && message.type === "*mesh.ProxyConfig";
  return goJson(isProxyConfig ? cleanProxyConfig(json) : json);
}
