/** A proxy that nobody runs, described by hand. It is read from the node that it would send, as a real one is. */
import { create, fromJson, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { withoutTrailing } from "@mizzen/go-text/trim";
import { error, type Parsed } from "#config/schema/problem.ts";
import { NodeSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import { errorText } from "#lib/mesh-error.ts";
import { ISTIO_VERSION } from "#lib/version.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import { parseProxyNode } from "#model/proxy/proxy-node.ts";

export interface SimulatedProxy {
  /** `sidecar~10.0.0.1~app-1.default~default.svc.cluster.local` */
  readonly nodeId: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly namespace: string | undefined;
  readonly serviceAccount: string | undefined;
  readonly clusterId: string;
  /** `1.40.0` */
  readonly envoyVersion: string;
  readonly extensions: readonly string[];
  /** `region/zone/subzone` */
  readonly locality: string;
  /** Node metadata, over what the fields above say. */
  readonly metadata: JsonObject;
}

/** What a proxy says of itself, as Envoy's bootstrap and config dump have it; problems are those of the text. */
export function parseNodeFile(text: string): Parsed<Partial<SimulatedProxy> & Pick<SimulatedProxy, "nodeId">> {
  try {
    const node = fromJson(NodeSchema, JSON.parse(text), { ignoreUnknownFields: true });
    const { region = "", zone = "", subZone = "" } = node.locality ?? {};
    const { userAgentVersionType: agent, extensions } = node;
    const version = agent.case === "userAgentBuildVersion" ? agent.value.version : undefined;
    return {
      value: {
        nodeId: node.id,
        metadata: node.metadata ?? {},
        locality: withoutTrailing([region, zone, subZone].join("/"), "/"),
        ...(version && { envoyVersion: `${version.majorNumber}.${version.minorNumber}.${version.patch}` }),
        ...(extensions.length > 0 && {
          extensions: extensions.filter(({ disabled }) => !disabled).map(({ name }) => name),
        }),
      },
      problems: [],
    };
  } catch (thrown) {
    return { value: undefined, problems: [error("", `is no node of Envoy in JSON: ${errorText(thrown)}`)] };
  }
}

/** The Envoy that is run here. */
export const UPSTREAM_ENVOY_VERSION = "1.40.0";

/** Extensions of Istio's own build of Envoy that upstream Envoy does not have. */
export const ISTIO_EXTENSIONS: readonly string[] = [
  "envoy.filters.http.peer_metadata",
  "envoy.filters.network.metadata_exchange",
  "istio.alpn",
  "istio.stats",
];

/** The proxy as the control plane would see it; it has proved to be whom it says it is. */
export function simulatedProxy(given: SimulatedProxy): Parsed<MeshProxy> {
  const { value: proxy, problems } = parseProxyNode(toBinary(NodeSchema, nodeOf(given)));
  if (proxy === undefined) return { value: undefined, problems };
  const { namespace, serviceAccount } = proxy;
  return { value: { ...proxy, verified: { namespace, serviceAccount } }, problems };
}

function nodeOf(given: SimulatedProxy) {
  const { nodeId, labels, namespace, serviceAccount, clusterId, envoyVersion, extensions } = given;
  const [region = "", zone = "", subZone = ""] = given.locality.split("/");
  return create(NodeSchema, {
    id: nodeId,
    userAgentName: "envoy",
    userAgentVersionType: { case: "userAgentVersion", value: envoyVersion },
    extensions: extensions.map((name) => ({ name })),
    locality: { region, zone, subZone },
    metadata: {
      CLUSTER_ID: clusterId,
      ISTIO_VERSION,
      ...(Object.keys(labels).length > 0 && { LABELS: { ...labels } }),
      ...(namespace !== undefined && { NAMESPACE: namespace }),
      ...(serviceAccount !== undefined && { SERVICE_ACCOUNT: serviceAccount }),
      ...given.metadata,
    },
  });
}
