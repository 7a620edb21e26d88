/** TLS settings for gRPC: certificates come from a provider of the client's own bootstrap, always called `default`. */
import { create } from "@bufbuild/protobuf";
import type { TransportSocketSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import {
  type CommonTlsContext,
  CommonTlsContextSchema,
  DownstreamTlsContextSchema,
  UpstreamTlsContextSchema,
} from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import { exactly } from "../tls/secrets.ts";
import { type Init, pack } from "../wire/encode.ts";

/** gRPC refuses a socket of another name. */
const SOCKET_NAME = "envoy.transport_sockets.tls";
const CERTIFICATE = { instanceName: "default", certificateName: "default" };
const ROOTS = { instanceName: "default", certificateName: "ROOTCA" };

/** Of a client that speaks mutual TLS to servers of these identities. */
export function upstreamSocket(identities: readonly string[]): Init<typeof TransportSocketSchema> {
  return socketOf(pack(UpstreamTlsContextSchema, { commonTlsContext: commonContext(identities) }));
}

/** Of a server that speaks mutual TLS. Which callers are let in, policies say. */
export function downstreamSocket(): Init<typeof TransportSocketSchema> {
  return socketOf(
    pack(DownstreamTlsContextSchema, { commonTlsContext: commonContext([]), requireClientCertificate: true }),
  );
}

/** Newer versions of gRPC read the fields without `certificateProvider` twice in their name, older ones the others. */
function commonContext(identities: readonly string[]): CommonTlsContext {
  return create(CommonTlsContextSchema, {
    tlsCertificateProviderInstance: CERTIFICATE,
    tlsCertificateCertificateProviderInstance: CERTIFICATE,
    validationContextType: {
      case: "combinedValidationContext",
      value: {
        validationContextCertificateProviderInstance: ROOTS,
        defaultValidationContext: {
          matchSubjectAltNames: exactly(identities),
          caCertificateProviderInstance: ROOTS,
        },
      },
    },
  });
}

function socketOf(value: ReturnType<typeof pack>): Init<typeof TransportSocketSchema> {
  return { name: SOCKET_NAME, configType: { case: "typedConfig", value } };
}
