/** Routes as gRPC takes them: those of sidecars, with names that carry the port and time limits where gRPC looks for them. */
import { fromBinary } from "@bufbuild/protobuf";
import { VirtualHostSchema } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import { RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import { type RoutedHostInput, routedHost } from "../routes/virtual-host.ts";
import { bytesOf, encode } from "../wire/encode.ts";

/** A route configuration without its virtual hosts, which are parts of it. */
export function grpcRoutes({ name }: { readonly name: string }): Uint8Array {
  return bytesOf(RouteConfigurationSchema, { name });
}

/** Calls as virtual services tell. */
export function grpcRoutedHost(input: RoutedHostInput): Uint8Array {
  return withStreamLimits(routedHost(input));
}

/** A call is a stream: gRPC reads its time limit from `max_stream_duration` alone. */
function withStreamLimits(bytes: Uint8Array): Uint8Array {
  const host = fromBinary(VirtualHostSchema, bytes);
  for (const { action } of host.routes) {
    if (action.case !== "route") continue;
    const { timeout } = action.value;
    delete action.value.maxGrpcTimeout;
    if (timeout === undefined) continue;
    action.value.maxStreamDuration = {
      $typeName: "envoy.config.route.v3.RouteAction.MaxStreamDuration",
      maxStreamDuration: timeout,
    };
  }
  return encode(VirtualHostSchema, host);
}
