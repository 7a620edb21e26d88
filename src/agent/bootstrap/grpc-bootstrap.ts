import { join } from "node:path";
import type { ProxyNode } from "../node.ts";

export interface GrpcBootstrapInput {
  readonly node: ProxyNode;
  /** Socket of the agent's xDS proxy. */
  readonly xdsSocketPath: string;
  /** Folder with the workload's certificate in files (OUTPUT_CERTS); empty when there is none. */
  readonly certificateFolder: string;
}

/** What gRPC clients without a proxy read from GRPC_XDS_BOOTSTRAP: they talk to the control plane through the agent. */
export function grpcBootstrap({ node, xdsSocketPath, certificateFolder }: GrpcBootstrapInput): object {
  return {
    xds_servers: [
      {
        server_uri: `unix:///${xdsSocketPath}`,
        channel_creds: [{ type: "insecure" }],
        server_features: ["xds_v3"],
      },
    ],
    node: {
      id: node.id,
      metadata: { ...node.metadata, GENERATOR: "grpc" },
      locality: { ...node.locality },
      UserAgentVersionType: null, // a trace of Go in the file that clients know
    },
    ...(certificateFolder === "" ? {} : { certificate_providers: certificateProviders(certificateFolder) }),
    server_listener_resource_name_template: "xds.istio.io/grpc/lds/inbound/%s",
  };
}

function certificateProviders(folder: string): object {
  return {
    default: {
      plugin_name: "file_watcher",
      config: {
        certificate_file: join(folder, "cert-chain.pem"),
        private_key_file: join(folder, "key.pem"),
        ca_certificate_file: join(folder, "root-cert.pem"),
        refresh_interval: "900s",
      },
    },
  };
}
