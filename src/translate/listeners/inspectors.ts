/** Listener filters: they look at the first bytes of a connection before a chain is chosen. */
import { create } from "@bufbuild/protobuf";
import { ListenerFilterSchema } from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import { HttpInspectorSchema } from "#gen/envoy/extensions/filters/listener/http_inspector/v3/http_inspector_pb.ts";
import { OriginalDstSchema } from "#gen/envoy/extensions/filters/listener/original_dst/v3/original_dst_pb.ts";
import { OriginalSrcSchema } from "#gen/envoy/extensions/filters/listener/original_src/v3/original_src_pb.ts";
import { ProxyProtocolSchema } from "#gen/envoy/extensions/filters/listener/proxy_protocol/v3/proxy_protocol_pb.ts";
import { TlsInspectorSchema } from "#gen/envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector_pb.ts";
import { pack } from "../wire/encode.ts";

/** Finds the server name and ALPN of TLS. */
export const TLS_INSPECTOR = create(ListenerFilterSchema, {
  name: "envoy.filters.listener.tls_inspector",
  configType: { case: "typedConfig", value: pack(TlsInspectorSchema, { initialReadBufferSize: 512 }) },
});

/** Finds out whether plain text is HTTP. Comes after the TLS inspector, which it leaves alone. */
export const HTTP_INSPECTOR = create(ListenerFilterSchema, {
  name: "envoy.filters.listener.http_inspector",
  configType: { case: "typedConfig", value: pack(HttpInspectorSchema, {}) },
});

/** Finds the address that was called before the connection was captured. */
export const ORIGINAL_DESTINATION = create(ListenerFilterSchema, {
  name: "envoy.filters.listener.original_dst",
  configType: { case: "typedConfig", value: pack(OriginalDstSchema, {}) },
});

/** Goes on with the client's own address; the mark keeps the answer on its way back through Envoy. */
export const ORIGINAL_SOURCE = create(ListenerFilterSchema, {
  name: "envoy.filters.listener.original_src",
  configType: { case: "typedConfig", value: pack(OriginalSrcSchema, { mark: 1337 }) },
});

/** Reads the header by which a load balancer tells the client's address. */
export const PROXY_PROTOCOL = create(ListenerFilterSchema, {
  name: "envoy.filters.listener.proxy_protocol",
  configType: { case: "typedConfig", value: pack(ProxyProtocolSchema, {}) },
});
