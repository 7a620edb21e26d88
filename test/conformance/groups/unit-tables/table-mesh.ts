/** Rows of tables that name services and configuration, as whole meshes and what their proxies get. */
import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { meshConfigSchema } from "#config/mesh/mesh-schema.ts";
import { parse } from "#config/schema/parse.ts";
import type { Filter } from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import type { Features } from "#model/features.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { type Translated, translated } from "../../../support/translated.ts";
import type { KubernetesObject } from "../../kubernetes-mesh.ts";
import { type NodeDump, recordedProxy } from "../../recorded.ts";
import { type RecordedInput, recordedMesh } from "../../recorded-mesh.ts";
import { formatResource, messageType, parseResource, throughBytes } from "../../resources.ts";

export interface TableMesh extends Pick<RecordedInput, "services" | "instances"> {
  readonly configs?: readonly KubernetesObject[] | undefined;
  /** Settings that differ from the usual ones. */
  readonly mesh?: object | undefined;
  readonly features?: Partial<Features>;
}

/** A mesh with the usual settings but for those given; throws what cannot be made one. */
export function tableMesh({ mesh = {}, features = {}, configs, ...rest }: TableMesh): Snapshot {
  const snapshot = recordedMesh({ ...rest, ...(configs && { configs }) });
  if ("leftOut" in snapshot) throw new Error(snapshot.leftOut);
  const given = parse(meshConfigSchema, mesh, "").value as object;
  return {
    ...snapshot,
    mesh: { ...snapshot.mesh, ...given },
    features: { ...snapshot.features, ...features },
  };
}

/** A proxy that differs from an ordinary sidecar of the namespace `default` in what is given. */
export function tableNode(given: Partial<NodeDump> = {}): NodeDump {
  const { type = "sidecar", configNamespace = "default", ipAddresses = ["1.1.1.1"] } = given;
  const domain = `${configNamespace}.svc.cluster.local`;
  const { metadata = {}, ...rest } = given;
  return {
    type,
    id: `app.${configNamespace}`,
    ipAddresses,
    configNamespace,
    dnsDomain: domain,
    ...rest,
    metadata: { NAMESPACE: configNamespace, ...metadata },
  };
}

/** What a proxy of the mesh gets. */
export function tableResources(mesh: TableMesh, node: Partial<NodeDump> = {}): Translated {
  return translated(tableMesh(mesh), recordedProxy(tableNode(node)));
}

/** An object of Istio's networking API, as the data writes them. */
export function networking(kind: string, spec: object, metadata: object = {}): KubernetesObject {
  const head = { name: "table", namespace: "default", ...metadata };
  return { apiVersion: "networking.istio.io/v1", kind, metadata: head, spec } as KubernetesObject;
}

/** As much of a value as another one has: what the other does not speak of is not compared. */
export function narrowed(value: unknown, like: unknown): unknown {
  if (Array.isArray(value) && Array.isArray(like)) {
    return value.map((item, i) => (i < like.length ? narrowed(item, like[i]) : item));
  }
  if (!isObject(value) || !isObject(like)) return value;
  const known = Object.keys(like).filter((key) => Object.hasOwn(value, key));
  return Object.fromEntries(known.map((key) => [key, narrowed(value[key], like[key])]));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A message as JSON. */
export function shown<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc> | undefined): unknown {
  return message && formatResource(messageType(schema.typeName), message);
}

/** The data's JSON of a message, spelled as ours. */
export function written(schema: DescMessage, json: unknown): unknown {
  const type = messageType(schema.typeName);
  return json === undefined ? undefined : throughBytes(type, parseResource(type, json));
}

/** The message in an `Any`, where it is of that type. */
export function opened<Desc extends DescMessage>(schema: Desc, any: Any | undefined): MessageShape<Desc> | undefined {
  return any?.typeUrl.endsWith(`/${schema.typeName}`) ? fromBinary(schema, any.value) : undefined;
}

/** The settings of the first of some filters that has settings of that type. */
export function settingsOf<Desc extends DescMessage>(
  schema: Desc,
  filters: readonly Pick<Filter, "configType">[],
): MessageShape<Desc> | undefined {
  for (const { configType } of filters) {
    const found = configType.case === "typedConfig" ? opened(schema, configType.value) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}
