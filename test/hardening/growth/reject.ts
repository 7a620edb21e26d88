/** A proxy that rejects what it gets. */

import { create, toBinary } from "@bufbuild/protobuf";
import { NodeSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import { EMPTY_REQUEST } from "#protocol/messages/delta-request.ts";
import { XdsClient } from "../../support/xds-client.ts";

const CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const ENDPOINTS = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
const NODE = toBinary(NodeSchema, create(NodeSchema, { id: "sidecar~10.1.0.1~a.default~default.svc.cluster.local" }));

/** Rejects the first response with that text, and waits until the server has read it. */
export async function rejectFirstResponse(port: number, text: string): Promise<void> {
  using client = new XdsClient(`127.0.0.1:${port}`, { node: NODE, patienceMs: 30_000 });
  client.request(CLUSTER, { subscribe: ["*"] });
  const response = await client.next(CLUSTER);
  client.reject(response, text);
  // The next answer shows that the server is done. A server that ends the stream is done, too.
  client.request(ENDPOINTS, { ...EMPTY_REQUEST, node: undefined, subscribe: ["outbound|80||s0.example.com"] });
  await client.next(ENDPOINTS).catch(() => undefined);
}
