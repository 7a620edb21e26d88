/** From the node that Envoy or an agent sends in its first request to the proxy it stands for. */
import { isIP } from "node:net";
import { fromBinary, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import type { Parsed, Problem } from "#config/schema/problem.ts";
import { LOCALITY_PARTS, statedLocality } from "#config/terms/topology-labels.ts";
import { type Node, NodeSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import { oddField, textOf } from "./node-metadata.ts";
import type { Proxy as MeshProxy } from "./proxy.ts";

const TYPES: readonly MeshProxy["type"][] = ["sidecar", "router"];

/** A node lists the extensions of its Envoy, some 700, and the labels and annotations of its pod. */
const MAX_NODE_BYTES = 512 * 1024;
/** Of a machine with many interfaces; each is looked up in the mesh. */
const MAX_ADDRESSES = 256;
/** The names in an id have at most 253 characters each. It is kept in logs and in the journal of pushes. */
const MAX_ID_BYTES = 1_024;

/** Reads an encoded `envoy.config.core.v3.Node`. Fields of problems are those of that message. */
export function parseProxyNode(bytes: Uint8Array): Parsed<MeshProxy> {
  if (bytes.length > MAX_NODE_BYTES)
    return failed("", `has ${bytes.length} bytes: at most ${MAX_NODE_BYTES} are allowed`);
  let node: Node;
  try {
    node = fromBinary(NodeSchema, bytes, { readUnknownFields: false });
  } catch (thrown) {
    return failed("", `is not an encoded node: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
  }
  if (Buffer.byteLength(node.id) > MAX_ID_BYTES) return failed("id", `has more than ${MAX_ID_BYTES} bytes`);
  const named = idParts(node.id);
  if (typeof named === "string") return failed("id", named);
  const { type, address, id, dnsDomain } = named;
  const metadata = node.metadata ?? {};
  const addresses = instanceAddresses(metadata) ?? [address];
  if (addresses.length > MAX_ADDRESSES)
    return failed("metadata.INSTANCE_IPS", `has more than ${MAX_ADDRESSES} addresses`);
  if (addresses.some((value) => isIP(value) === 0)) return failed("id", `needs an IP address, not ${shown(address)}`);
  const field = oddField(metadata);
  if (field !== undefined) {
    const { name, value, wanted } = field;
    return failed(`metadata.${name}`, `of ${shown(node.id)} must be ${wanted}, not ${shown(value)}`);
  }
  const proxy: MeshProxy = {
    nodeId: node.id,
    type,
    addresses,
    id,
    namespace: textOf(metadata.NAMESPACE) || id.slice(id.lastIndexOf(".") + 1),
    dnsDomain,
    labels: texts(metadata.LABELS),
    locality: localityOfLabels(texts(metadata.LABELS)) || localityOf(node),
    nodeLocality: localityOf(node),
    serviceAccount: textOf(metadata.SERVICE_ACCOUNT),
    metadata,
    envoyVersion: envoyVersion(node),
    extensions: new Set(node.extensions.filter(({ disabled }) => !disabled).map(({ name }) => name)),
  };
  return { value: proxy, problems: [] };
}

/** The parts of `type~address~name.namespace~domain`, or what is wrong with it. */
function idParts(
  nodeId: string,
): (Pick<MeshProxy, "type" | "id" | "dnsDomain"> & { readonly address: string }) | string {
  const parts = nodeId.split("~");
  const [role, address, id, dnsDomain] = parts;
  if (
    parts.length !== 4 ||
    role === undefined ||
    address === undefined ||
    id === undefined ||
    dnsDomain === undefined
  ) {
    return `must be "type~address~name.namespace~domain", not ${shown(nodeId)}`;
  }
  if (/[\p{Cc}\s]/u.test(nodeId)) return `has blanks or control characters: ${shown(nodeId)}`;
  const type = TYPES.find((known) => known === role);
  if (type === undefined) return `has the type ${shown(role)}: ${TYPES.join(" and ")} are served`;
  return { type, address, id, dnsDomain };
}

/** `INSTANCE_IPS` is a list in one string; it counts only if all of it are addresses. */
function instanceAddresses(metadata: JsonObject): readonly string[] | undefined {
  const list = textOf(metadata.INSTANCE_IPS).split(",");
  const addresses = list.map((value) => value.trim()).filter((value) => value !== "");
  return addresses.length > 0 && addresses.every((value) => isIP(value) !== 0) ? addresses : undefined;
}

function localityOf({ locality }: Node): string {
  return joined([locality?.region, locality?.zone, locality?.subZone]);
}

/** The locality that labels of a workload tell; empty when they tell none. */
export function localityOfLabels(labels: Readonly<Record<string, string>>): string {
  const parts = LOCALITY_PARTS.map((name) => labels[name]);
  if (parts.some((part) => part !== undefined)) return joined(parts);
  return statedLocality(labels);
}

/** Up to the first part that is missing. */
function joined(parts: readonly (string | undefined)[]): string {
  const end = parts.findIndex((part, i) => i > 0 && !part);
  return (end === -1 ? parts : parts.slice(0, end)).map((part) => part ?? "").join("/");
}

function envoyVersion({ userAgentVersionType }: Node): string {
  if (userAgentVersionType.case === "userAgentVersion") return userAgentVersionType.value;
  const version = userAgentVersionType.value?.version;
  return version === undefined ? "" : `${version.majorNumber}.${version.minorNumber}.${version.patch}`;
}

function texts(value: JsonValue | undefined): Readonly<Record<string, string>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

/** Of what a stranger sent, as much as is worth a log line; text is in quotes that it cannot leave. */
function shown(value: JsonValue): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const start = text.length > 100 ? `${text.slice(0, 100)}...` : text;
  return typeof value === "string" ? JSON.stringify(start) : start;
}

function failed(field: string, message: string): Parsed<MeshProxy> {
  const problem: Problem = { field: field === "" ? "node" : `node.${field}`, message, severity: "error" };
  return { value: undefined, problems: [problem] };
}
