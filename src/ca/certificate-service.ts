/**
 * `istio.v1.auth.IstioCertificateService`: a workload sends a CSR with its token and gets a certificate for the identity
 * that the token proves. Each answer leaves one line in the log, issued or refused: who asked, from where, for what and
 * why not; never a token or a key.
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
import type { Caller, CertificateSigner } from "#model/ports.ts";
import { CLOCK_SKEW_MS } from "./lifetime.ts";
import type { CaCounter } from "./metrics.ts";
import { impersonationRefusal, type NodeAgents } from "./node-agents.ts";

export interface CertificateServiceOptions {
  readonly signer: CertificateSigner;
  readonly authenticate: (credentials: Credentials) => Promise<Authentication>;
  readonly count: (counter: CaCounter) => void;
  /** False when the identity asks too often. */
  readonly allow: (identity: string) => boolean;
  /** Who may act for the workloads of its node; nobody when left out. */
  readonly nodeAgents?: NodeAgents | undefined;
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
    const subject = await subjectOf(call.request, authentication.caller, options);
    const chain = await options.signer.sign({
      csrPem: call.request.csr,
      identity: subject,
      ttlSeconds: Number(call.request.validityDuration),
    });
    count("citadel_server_success_cert_issuance_count");
    const by = subject === identity ? {} : { actingFor: subject };
    log.info("certificate issued", { peer, identity, provedBy, ...by, ...described(chain[0] ?? "") });
    return { chain };
  } catch (error) {
    const { counter, code, details } = failureOf(error);
    count(counter);
    const reason = errorText(error).replaceAll(/\s+/g, " ");
    log.warn("certificate refused", { peer, identity, provedBy, reason });
    return { refusal: { code, details: details ?? reason } };
  }
}

function described(leaf: string): { serial: string; expires: string; ttlSeconds: number } {
  const { serialNumber: serial, validFromDate, validToDate } = new X509Certificate(leaf);
  const ttlSeconds = (validToDate.getTime() - validFromDate.getTime() - CLOCK_SKEW_MS) / 1000;
  return { serial, expires: validToDate.toISOString(), ttlSeconds };
}

interface Failure {
  readonly counter: CaCounter;
  readonly code: status;
  /** In place of the reason, which then is for the log alone. */
  readonly details?: string;
}

const FAILURES: Readonly<Record<string, Failure>> = {
  CSR_INVALID: { counter: "citadel_server_csr_parsing_err_count", code: status.INVALID_ARGUMENT },
  CSR_TOO_MANY: { counter: "citadel_server_csr_sign_err_count", code: status.RESOURCE_EXHAUSTED },
  CALLER_REFUSED: {
    counter: "citadel_server_authentication_failure_count",
    code: status.UNAUTHENTICATED,
    details: "request impersonation authentication failure",
  },
};

function failureOf(error: unknown): Failure {
  const known = error instanceof MeshError ? FAILURES[error.code] : undefined;
  return known ?? { counter: "citadel_server_csr_sign_err_count", code: status.INTERNAL };
}

/** Whom the certificate is for: the caller, or the workload that it may act for. */
async function subjectOf(
  request: IstioCertificateRequest,
  caller: Caller,
  { allow, nodeAgents }: CertificateServiceOptions,
): Promise<string> {
  const { identity } = caller;
  // Before anything is parsed: what is limited is work.
  if (!allow(identity)) throw new MeshError("CSR_TOO_MANY", `"${identity}" asks for certificates too often`);
  const wanted = request.metadata?.ImpersonatedIdentity;
  if (typeof wanted !== "string" || wanted === "") return identity;
  const refused = nodeAgents === undefined ? "nobody is" : await impersonationRefusal(caller, wanted, nodeAgents);
  if (refused === undefined) return wanted;
  throw new MeshError("CALLER_REFUSED", `not trusted to act for "${wanted.slice(0, 200)}": ${refused}`);
}
