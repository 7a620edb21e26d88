/**
 * `envoy.service.discovery.v3.AggregatedDiscoveryService` on the agent's socket. Each stream of Envoy gets a stream of
 * its own to the control plane, of the same kind, over a connection of its own:
 *
 *   Envoy --requests--> agent --requests, and ours once after the first for listeners--> control plane
 *   Envoy <--responses-- agent <--responses-- control plane
 *                          '-- of types that are ours: handled, acknowledged, never forwarded
 *
 * The end of either stream is the end of both: after it Envoy starts its whole sequence anew, at whatever replica answers.
 */
import type { ServerDuplexStream } from "@grpc/grpc-js";
import type { Logger } from "#lib/log.ts";
import type { ControlPlaneOptions } from "../control-plane.ts";
import type { AgentMetrics } from "../metrics.ts";
import { RAW, type UnixService } from "../unix-server.ts";
import { proxyStream } from "./proxy-stream.ts";
import { DELTA, SOTW, type StreamKind } from "./stream-kind.ts";

export interface XdsProxyOptions {
  readonly upstream: ControlPlaneOptions;
  /** What to do with the resource of a type that is the agent's own; throwing refuses it. */
  readonly ownTypes: ReadonlyMap<string, (resource: Uint8Array) => void>;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
}

const SERVICE = "/envoy.service.discovery.v3.AggregatedDiscoveryService";

export function xdsProxyService(options: XdsProxyOptions): UnixService {
  let streams = 0;
  const method = ({ method: name }: StreamKind) => ({
    path: `${SERVICE}/${name}`,
    requestStream: true,
    responseStream: true,
    ...RAW,
  });
  const handler = (kind: StreamKind) => (downstream: ServerDuplexStream<Buffer, Buffer>) => {
    void proxyStream({ ...options, kind, downstream, id: ++streams, path: `${SERVICE}/${kind.method}` });
  };
  return {
    definition: { [DELTA.method]: method(DELTA), [SOTW.method]: method(SOTW) },
    implementation: { [DELTA.method]: handler(DELTA), [SOTW.method]: handler(SOTW) },
  };
}
