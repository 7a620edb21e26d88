/**
 * `istio.v1.auth.IstioCertificateService`: a workload sends a CSR with its token and gets a certificate for the identity
 * that the token proves. Each answer leaves one line in the log, issued or refused.
 */
import { X509Certificate } from "node:crypto";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type MethodDefinition, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";
import type { Authentication, Credentials } from "#authn/authenticator.ts";
import {
  type IstioCertificateRequest,
  IstioCertificateRequestSchema,
  type IstioCertificateResponse,
  IstioCertificateResponseSchema,
} from "#gen/istio/v1/auth/ca_pb.ts";
import type { Logger } from "#lib/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { callCredentials, type GrpcService } from "#lib/net/grpc-service.ts";
import type { CertificateSigner } from "#model/ports.ts";
import type { CaCounter } from "./metrics.ts";

export interface CertificateServiceOptions {
  readonly signer: CertificateSigner;
  readonly authenticate: (credentials: Credentials) => Promise<Authentication>;
  readonly count: (counter: CaCounter) => void;
  readonly log: Logger;
}

type Call = ServerUnaryCall<IstioCertificateRequest, IstioCertificateResponse>;
type Outcome =
  | { readonly chain: readonly string[] }
  | { readonly refusal: { readonly code: status; readonly details: string } };

const CREATE_CERTIFICATE: MethodDefinition<IstioCertificateRequest, IstioCertificateResponse> = {
  path: "/istio.v1.auth.IstioCertificateService/CreateCertificate",
  requestStream: false,
  responseStream: false,
  requestSerialize: (request) => Buffer.from(toBinary(IstioCertificateRequestSchema, request)),
  requestDeserialize: (bytes) => fromBinary(IstioCertificateRequestSchema, bytes),
  responseSerialize: (response) => Buffer.from(toBinary(IstioCertificateResponseSchema, response)),
  responseDeserialize: (bytes) => fromBinary(IstioCertificateResponseSchema, bytes),
};

/** Definition alone, for clients. */
export const CERTIFICATE_SERVICE = { CreateCertificate: CREATE_CERTIFICATE };

/** The service over a signer. */
export function certificateService(options: CertificateServiceOptions): GrpcService {
  const createCertificate = (call: Call, answer: sendUnaryData<IstioCertificateResponse>) => {
    certificateFor(call, options).then(
      (outcome) => {
        if ("refusal" in outcome) answer(outcome.refusal);
        else answer(null, create(IstioCertificateResponseSchema, { certChain: [...outcome.chain] }));
      },
      (error: unknown) => {
        options.log.error("certificate request failed", { reason: errorText(error) });
        answer({ code: status.INTERNAL, details: "internal error" });
      },
    );
  };
  return { definition: CERTIFICATE_SERVICE, implementation: { CreateCertificate: createCertificate } };
}

async function certificateFor(call: Call, options: CertificateServiceOptions): Promise<Outcome> {
  const { authenticate, count, log } = options;
  const peer = call.getPeer();
  count("citadel_server_csr_count");
  const authentication = await authenticate(callCredentials(call));
  if ("refused" in authentication) {
    count("citadel_server_authentication_failure_count");
    log.warn("certificate refused", { peer, reason: authentication.refused });
    return { refusal: { code: status.UNAUTHENTICATED, details: authentication.refused } };
  }
  const { identity, provedBy } = authentication.caller;
  try {
    const chain = await sign(call.request, identity, options.signer);
    count("citadel_server_success_cert_issuance_count");
    const { serialNumber: serial, validToDate } = new X509Certificate(chain[0] ?? "");
    log.info("certificate issued", { peer, identity, provedBy, serial, expires: validToDate.toISOString() });
    return { chain };
  } catch (error) {
    const isBadRequest = error instanceof MeshError && error.code === "CSR_INVALID";
    count(isBadRequest ? "citadel_server_csr_parsing_err_count" : "citadel_server_csr_sign_err_count");
    const reason = errorText(error).replaceAll(/\s+/g, " ");
    log.warn("certificate refused", { peer, identity, reason });
    return { refusal: { code: isBadRequest ? status.INVALID_ARGUMENT : status.INTERNAL, details: reason } };
  }
}

function sign(request: IstioCertificateRequest, identity: string, signer: CertificateSigner) {
  if (request.metadata?.ImpersonatedIdentity !== undefined) {
    throw new MeshError("CSR_INVALID", "certificates for another identity than the caller's are not issued");
  }
  return signer.sign({ csrPem: request.csr, identity, ttlSeconds: Number(request.validityDuration) });
}
