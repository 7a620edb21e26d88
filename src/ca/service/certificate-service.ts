/**
 * `istio.v1.auth.IstioCertificateService`: a workload sends a CSR with its token and gets a certificate for the identity
 * that the token proves. Each answer leaves one line in the log, issued or refused: who asked, from where, for what and
 * why not; never a token or a key.
 */
import { X509Certificate } from "node:crypto";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Authentication, Credentials } from "#authn/authenticator.ts";
import {
  type IstioCertificateRequest,
  IstioCertificateRequestSchema,
  IstioCertificateResponseSchema,
} from "#gen/istio/v1/auth/ca_pb.ts";
import { callCredentials } from "#lib/grpc/call-credentials.ts";
import type { Methods, ServerCall } from "#lib/grpc/server-call.ts";
import { GrpcError, STATUS } from "#lib/grpc/status.ts";
import { readingMethod } from "#lib/grpc/unary-method.ts";
import { LimitedLog } from "#lib/log/limited-log.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { Caller, CertificateSigner } from "#model/ports.ts";
import type { CaCounter } from "../authority/metrics.ts";
import { CLOCK_SKEW_MS } from "../keys/lifetime.ts";
import { impersonationRefusal, type NodeAgents } from "./node-agents.ts";

export interface CertificateServiceOptions {
  readonly signer: CertificateSigner;
  readonly authenticate: (credentials: Credentials) => Promise<Authentication>;
  readonly count: (counter: CaCounter) => void;
  /** False when the identity asks too often. */
  readonly allow: (identity: string) => boolean;
  /** Who may act for the workloads of its node; nobody when left out. */
  readonly nodeAgents?: NodeAgents | undefined;
  /** Counts calls while it does their work. */
  readonly counted?: <T>(path: string, work: () => Promise<T>) => Promise<T>;
  readonly log: Logger;
}

/** A request for the largest RSA key, with its metadata, takes a tenth of it. */
const MAX_REQUEST_BYTES = 64 * 1024;

/** The one method. */
export const CREATE_CERTIFICATE = "/istio.v1.auth.IstioCertificateService/CreateCertificate";

/** The service over a signer. */
export function certificateService(options: CertificateServiceOptions): Methods {
  const { counted = (_, work) => work() } = options;
  const refusals = new LimitedLog({ log: options.log, now: () => performance.now() });
  const createCertificate = readingMethod((call, read) =>
    counted(CREATE_CERTIFICATE, async () => {
      const caller = await callerOf(call, options, refusals);
      call.authenticated(caller.identity);
      const request = requestIn(await read({ maxBytes: MAX_REQUEST_BYTES }));
      const certChain = await certificateFor(request, { caller, peer: call.peer }, options);
      return toBinary(IstioCertificateResponseSchema, create(IstioCertificateResponseSchema, { certChain }));
    }),
  );
  return { [CREATE_CERTIFICATE]: createCertificate };
}

function requestIn(bytes: Uint8Array): IstioCertificateRequest {
  try {
    return fromBinary(IstioCertificateRequestSchema, bytes);
  } catch (cause) {
    throw new GrpcError(STATUS.INTERNAL, "Cannot read the request: it is no IstioCertificateRequest", { cause });
  }
}

/** The caller; throws how the call ends otherwise. Nobody else's request is read. */
async function callerOf(call: ServerCall, options: CertificateServiceOptions, refusals: LimitedLog): Promise<Caller> {
  const { authenticate, count, log } = options;
  const { peer } = call;
  count("citadel_server_csr_count");
  const authentication = await authenticate(callCredentials(call)).catch((error: unknown) => {
    log.error("certificate request failed", { reason: errorText(error) });
    throw new GrpcError(STATUS.INTERNAL, "internal error", { cause: error });
  });
  if ("caller" in authentication) return authentication.caller;
  count("citadel_server_authentication_failure_count");
  call.refused("unauthenticated");
  refusals.warn("certificate refused", { peer, reason: authentication.refused });
  throw new GrpcError(STATUS.UNAUTHENTICATED, authentication.refused);
}

/** The chain, leaf first; throws how the call ends otherwise. */
async function certificateFor(
  request: IstioCertificateRequest,
  { caller, peer }: { readonly caller: Caller; readonly peer: string },
  options: CertificateServiceOptions,
): Promise<string[]> {
  const { count, log } = options;
  const { identity, provedBy } = caller;
  try {
    const subject = await subjectOf(request, caller, options);
    const chain = await options.signer.sign({
      csrPem: request.csr,
      identity: subject,
      ttlSeconds: Number(request.validityDuration),
    });
    count("citadel_server_success_cert_issuance_count");
    const by = subject === identity ? {} : { actingFor: subject };
    log.info("certificate issued", { peer, identity, provedBy, ...by, ...described(chain[0] ?? "") });
    return [...chain];
  } catch (error) {
    const { counter, code, details } = failureOf(error);
    count(counter);
    const reason = errorText(error).replaceAll(/\s+/g, " ");
    log.warn("certificate refused", { peer, identity, provedBy, reason });
    throw new GrpcError(code, details ?? reason, { cause: error });
  }
}

function described(leaf: string): { serial: string; expires: string; ttlSeconds: number } {
  const { serialNumber: serial, validFromDate, validToDate } = new X509Certificate(leaf);
  const ttlSeconds = (validToDate.getTime() - validFromDate.getTime() - CLOCK_SKEW_MS) / 1000;
  return { serial, expires: validToDate.toISOString(), ttlSeconds };
}

interface Failure {
  readonly counter: CaCounter;
  readonly code: number;
  /** In place of the reason, which then is for the log alone. */
  readonly details?: string;
}

const FAILURES: Readonly<Record<string, Failure>> = {
  CSR_INVALID: { counter: "citadel_server_csr_parsing_err_count", code: STATUS.INVALID_ARGUMENT },
  CSR_TOO_MANY: { counter: "citadel_server_csr_sign_err_count", code: STATUS.RESOURCE_EXHAUSTED },
  CALLER_REFUSED: {
    counter: "citadel_server_authentication_failure_count",
    code: STATUS.UNAUTHENTICATED,
    details: "request impersonation authentication failure",
  },
};

function failureOf(error: unknown): Failure {
  const known = error instanceof MeshError ? FAILURES[error.code] : undefined;
  return known ?? { counter: "citadel_server_csr_sign_err_count", code: STATUS.INTERNAL };
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
