import type { TlsSettings } from "#config/proxy-config/proxy-config.ts";
import type { ProxyNode } from "../node.ts";
import type { Json } from "./input.ts";

export interface RemoteTlsOptions {
  readonly node: ProxyNode;
  /** Server name for mutual TLS of the mesh where the user gives none. */
  readonly sni: string;
  readonly http2: boolean;
}

const SYSTEM_ROOTS = "file-root:system";

type Fields = { readonly [key: string]: Json };

/** The transport socket towards a service that Envoy itself calls; nothing without TLS. Certificates come over SDS. */
export function remoteTls(tls: TlsSettings | undefined, { node, sni, http2 }: RemoteTlsOptions): Fields {
  if (tls?.mode === undefined) return {};
  const inMesh = tls.mode === "ISTIO_MUTUAL";
  const path = (key: string, fallback: string | undefined) => String(node.metadata[key] ?? fallback ?? "");
  const certificate = inMesh
    ? "default"
    : tls.mode === "MUTUAL"
      ? certificateResource(
          path("TLS_CLIENT_CERT_CHAIN", tls.clientCertificate),
          path("TLS_CLIENT_KEY", tls.privateKey),
        )
      : "";
  const root = inMesh ? "ROOTCA" : rootResource(path("TLS_CLIENT_ROOT_CERT", tls.caCertificates));
  // The API has servers verified by what the machine trusts where no roots are given.
  const roots = root === "" && tls.insecureSkipVerify !== true ? SYSTEM_ROOTS : root;
  const serverName = tls.sni ?? (inMesh ? sni : "");
  const alpn = inMesh ? ["istio", "h2"] : ["h2"];
  return {
    transport_socket: {
      name: "envoy.transport_sockets.tls",
      typed_config: {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        common_tls_context: {
          ...(http2 ? { alpn_protocols: alpn } : {}),
          ...(certificate === "" ? {} : { tls_certificate_sds_secret_configs: [sdsSecret(certificate)] }),
          ...(roots === "" ? {} : verifiedBy(roots, tls.subjectAltNames ?? [])),
        },
        ...(serverName === "" ? {} : { sni: serverName }),
      },
    },
  };
}

function verifiedBy(roots: string, names: readonly string[]): Fields {
  return {
    combined_validation_context: {
      default_validation_context: subjectAltNames(names),
      validation_context_sds_secret_config: sdsSecret(roots),
    },
  };
}

function certificateResource(certificate: string, key: string): string {
  return certificate === "" || key === "" ? "" : `file-cert:${certificate}~${key}`;
}

function rootResource(root: string): string {
  return root === "" ? "" : `file-root:${root}`;
}

function subjectAltNames(names: readonly string[]): Json {
  return names.length === 0 ? {} : { match_subject_alt_names: names.map((exact) => ({ exact })) };
}

function sdsSecret(name: string): Json {
  return {
    name,
    sds_config: {
      api_config_source: {
        api_type: "GRPC",
        transport_api_version: "V3",
        set_node_on_first_message_only: true,
        grpc_services: [{ envoy_grpc: { cluster_name: "sds-grpc" } }],
      },
      resource_api_version: "V3",
      ...(name === "default" || name === "ROOTCA" ? { initial_fetch_timeout: "0s" } : {}),
    },
  };
}
