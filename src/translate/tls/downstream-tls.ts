/** TLS that a proxy of the mesh ends for its workload. */
import { create } from "@bufbuild/protobuf";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { type TransportSocket, TransportSocketSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import { QuicDownstreamTransportSchema } from "#gen/envoy/extensions/transport_sockets/quic/v3/quic_transport_pb.ts";
import { TlsParameters_TlsProtocol as TlsVersion } from "#gen/envoy/extensions/transport_sockets/tls/v3/common_pb.ts";
import {
  type CommonTlsContextSchema,
  DownstreamTlsContextSchema,
} from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import type { ServerSecrets, TcpTraits } from "../traits/traits.ts";
import { type Init, pack } from "../wire/encode.ts";
import { compliant } from "./compliance.ts";
import { beginningWith, fileSecret, knownCiphers, TRUSTED_ROOTS, WORKLOAD_CERTIFICATE } from "./secrets.ts";

const CIPHER_SUITES = [
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "AES256-GCM-SHA384",
  "AES128-GCM-SHA256",
];

/** What mutual TLS with clients of the mesh depends on. */
export interface MutualTlsInput {
  readonly alpnProtocols: readonly string[];
  readonly mesh: MeshConfig;
  readonly secrets: ServerSecrets;
  readonly traits: Pick<TcpTraits, "anyTrustDomain" | "compliance" | "fileSocket">;
}

/** Mutual TLS: the client has to show a certificate of one of the mesh's trust domains. */
export function mutualTls({ alpnProtocols, mesh, secrets, traits }: MutualTlsInput): TransportSocket {
  const { meshMTLS } = mesh;
  const { certificate, roots } = secrets;
  const ofRoots = (mesh.caCertificates ?? []).flatMap(({ trustDomains = [] }) => trustDomains);
  const trustDomains = [...new Set([mesh.trustDomain, ...mesh.trustDomainAliases, ...ofRoots])].filter(
    (domain) => domain !== "",
  );
  const names = traits.anyTrustDomain ? [] : trustDomains.map((domain) => `spiffe://${domain}/`);
  const context: Init<typeof CommonTlsContextSchema> = {
    tlsParams: {
      tlsMinimumProtocolVersion: meshMTLS?.minProtocolVersion === "TLSV1_3" ? TlsVersion.TLSv1_3 : TlsVersion.TLSv1_2,
      tlsMaximumProtocolVersion: TlsVersion.TLSv1_3,
      cipherSuites: knownCiphers(meshMTLS?.cipherSuites ?? CIPHER_SUITES),
    },
    alpnProtocols: [...alpnProtocols],
    tlsCertificateSdsSecretConfigs: [certificate === "" ? WORKLOAD_CERTIFICATE : fileSecret(certificate, traits)],
    validationContextType: {
      case: "combinedValidationContext",
      value: {
        defaultValidationContext: {
          matchSubjectAltNames: beginningWith(names),
        },
        validationContextSdsSecretConfig: roots === "" ? TRUSTED_ROOTS : fileSecret(roots, traits),
      },
    },
  };
  return downstreamTlsSocket({
    requireClientCertificate: true,
    commonTlsContext: compliant(context, traits.compliance),
  });
}

/** A socket that ends TLS. */
export function downstreamTlsSocket(context: Init<typeof DownstreamTlsContextSchema>): TransportSocket {
  return create(TransportSocketSchema, {
    name: "envoy.transport_sockets.tls",
    configType: { case: "typedConfig", value: pack(DownstreamTlsContextSchema, context) },
  });
}

/** A socket that ends QUIC, which has TLS inside. */
export function quicSocket(downstreamTlsContext: Init<typeof DownstreamTlsContextSchema>): TransportSocket {
  return create(TransportSocketSchema, {
    name: "envoy.transport_sockets.quic",
    configType: { case: "typedConfig", value: pack(QuicDownstreamTransportSchema, { downstreamTlsContext }) },
  });
}
