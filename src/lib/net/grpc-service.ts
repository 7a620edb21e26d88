import type { ServerUnaryCall, ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";

/** A gRPC service with what answers it, ready to be added to a server. */
export interface GrpcService {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
}

/** What all kinds of calls have in common. */
export type AnyCall = Pick<ServerUnaryCall<unknown, unknown>, "metadata" | "getPeer" | "getAuthContext">;

/** What the caller of any kind of call showed to prove who it is. */
export interface CallCredentials {
  /** Header `authorization`. */
  readonly authorization: string | undefined;
  /** DER of a client certificate; present only if TLS verified it. */
  readonly certificate: Uint8Array | undefined;
  /** Header `clusterid`: where the caller says it runs. */
  readonly clusterId?: string | undefined;
}

/** Reads the credentials of a call. An unverified certificate does not appear: grpc-js shows authorized ones only. */
export function callCredentials(call: AnyCall): CallCredentials {
  const values = call.metadata.get("authorization").filter((value) => typeof value === "string");
  return {
    // Of several the first token counts, as with istiod.
    authorization: values.find((value) => value.startsWith("Bearer ")) ?? values[0],
    certificate: call.getAuthContext().sslPeerCertificate?.raw,
    clusterId: call.metadata.get("clusterid").find((value) => typeof value === "string"),
  };
}
