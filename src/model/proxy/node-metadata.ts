/** Types of the metadata that proxies send with their node. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { parseGoBool } from "#lib/go/go-bool.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { parsePodPorts } from "../workload/pod-ports.ts";

/** What a field has to be, and how to tell. */
interface FieldType {
  readonly is: (value: JsonValue) => boolean;
  readonly wanted: string;
}

const TEXT: FieldType = { is: (value) => value === null || typeof value === "string", wanted: "a text" };
const NUMBER: FieldType = { is: (value) => value === null || Number.isInteger(value), wanted: "a whole number" };
const SWITCH: FieldType = {
  is: (value) => typeof value === "string" && parseGoBool(value) !== undefined,
  wanted: '"true" or "false"',
};
const OBJECT: FieldType = { is: (value) => value === null || isRecord(value), wanted: "an object" };
const LIST: FieldType = {
  is: (value) => value === null || (Array.isArray(value) && value.every(TEXT.is)),
  wanted: "a list of texts",
};
const TEXTS: FieldType = {
  is: (value) => value === null || (isRecord(value) && Object.values(value).every(TEXT.is)),
  wanted: "an object of texts",
};
const PORTS: FieldType = {
  is: (value) => parsePodPorts(value) !== undefined,
  wanted: "a JSON list of ports as text",
};

const TEXT_FIELDS = [
  "APP_CONTAINERS AUTO_REGISTER_GROUP BASE CLOUDRUN_ADDR CLUSTER_ID GENERATOR HTTP10 HTTP_PROXY_PORT IDLE_TIMEOUT",
  "INSTANCE_IPS INTERCEPTION_MODE ISTIO_PROXY_SHA ISTIO_REVISION ISTIO_VERSION MESH_ID NAME NAMESPACE NETWORK NODE_NAME",
  "OUTLIER_LOG_PATH OWNER REQUESTED_NETWORK_VIEW SERVICE_ACCOUNT STS_PORT TLS_CLIENT_CERT_CHAIN TLS_CLIENT_KEY",
  "TLS_CLIENT_ROOT_CERT TLS_SERVER_CERT_CHAIN TLS_SERVER_KEY TLS_SERVER_ROOT_CERT UNPRIVILEGED_POD WORKLOAD_ENTRY",
  "WORKLOAD_IDENTITY_SOCKET_FILE WORKLOAD_NAME",
];
const SWITCH_FIELDS = [
  "DISABLE_HBONE_SEND DNS_AUTO_ALLOCATE DNS_CAPTURE ENABLE_HBONE ENVOY_SKIP_DEPRECATED_LOGS",
  "EXIT_ON_ZERO_ACTIVE_CONNECTIONS INBOUND_LISTENER_EXACT_BALANCE METADATA_DISCOVERY OUTBOUND_LISTENER_EXACT_BALANCE",
];

/** The fields that Istio knows; others may be anything. */
const FIELDS: ReadonlyMap<string, FieldType> = new Map([
  ...ofType(TEXT, TEXT_FIELDS),
  ...ofType(SWITCH, SWITCH_FIELDS),
  ...ofType(NUMBER, ["ENVOY_PROMETHEUS_PORT ENVOY_STATUS_PORT"]),
  ...ofType(TEXTS, ["ANNOTATIONS LABELS PLATFORM_METADATA STATIC_LABELS"]),
  ...ofType(LIST, ["PILOT_SAN"]),
  ...ofType(OBJECT, ["PROXY_CONFIG"]),
  ...ofType(PORTS, ["POD_PORTS"]),
]);

function ofType(type: FieldType, lines: readonly string[]): readonly (readonly [string, FieldType])[] {
  return lines.flatMap((line) => line.split(" ")).map((name) => [name, type]);
}

/** A field of metadata that is not of its type. */
export interface OddField {
  readonly name: string;
  readonly value: JsonValue;
  readonly wanted: string;
}

/** The first field of another type than Istio's agents send; undefined when there is none. */
export function oddField(metadata: JsonObject): OddField | undefined {
  for (const [name, value] of Object.entries(metadata)) {
    const type = FIELDS.get(name);
    if (type !== undefined && !type.is(value)) return { name, value, wanted: type.wanted };
  }
  return undefined;
}

/** Whether a switch of metadata is on; they are texts, read as Go reads booleans. */
export function isOn(value: unknown): boolean {
  return parseGoBool(textOf(value)) ?? false;
}

/** A text of metadata; empty where it is none. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
