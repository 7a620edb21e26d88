/** The header by which a proxy tells the server the address of its client. */
import { create } from "@bufbuild/protobuf";
import type { TrafficPolicy } from "#config/kinds/destination-rule/schema.ts";
import { type TransportSocket, TransportSocketSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import { ProxyProtocolConfig_Version } from "#gen/envoy/config/core/v3/proxy_protocol_pb.ts";
import { ProxyProtocolUpstreamTransportSchema } from "#gen/envoy/extensions/transport_sockets/proxy_protocol/v3/upstream_proxy_protocol_pb.ts";
import { RawBufferSchema } from "#gen/envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer_pb.ts";
import type { UpstreamTls } from "../tls/upstream-tls.ts";
import { pack } from "../wire/encode.ts";

/** Puts the header in front of what the sockets send. */
export function withProxyProtocol(
  sockets: UpstreamTls["sockets"],
  wanted: TrafficPolicy["proxyProtocol"],
): UpstreamTls["sockets"] {
  if (wanted === undefined) return sockets;
  const version = wanted.version === "V2" ? ProxyProtocolConfig_Version.V2 : ProxyProtocolConfig_Version.V1;
  const wrap = (transportSocket: TransportSocket) =>
    create(TransportSocketSchema, {
      name: "envoy.transport_sockets.upstream_proxy_protocol",
      configType: {
        case: "typedConfig",
        value: pack(ProxyProtocolUpstreamTransportSchema, { config: { version }, transportSocket }),
      },
    });
  const { transportSocket, transportSocketMatches } = sockets;
  if (transportSocketMatches === undefined) return { transportSocket: wrap(transportSocket ?? PLAIN) };
  return {
    transportSocketMatches: transportSocketMatches.map((match) => ({
      ...match,
      transportSocket: wrap(match.transportSocket),
    })),
  };
}

const PLAIN = create(TransportSocketSchema, {
  name: "raw_buffer",
  configType: { case: "typedConfig", value: pack(RawBufferSchema, {}) },
});
