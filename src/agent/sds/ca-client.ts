/** `istio.v1.auth.IstioCertificateService`, the certificate authority of the mesh. */
import { type Client, type Metadata, type ServiceError, status } from "@grpc/grpc-js";
import type { Logger } from "#lib/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { readMessage, readString } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { type ControlPlaneOptions, callMetadata, connectControlPlane } from "../control-plane.ts";
import { RAW } from "../unix-server.ts";

export interface SignRequest {
  /** PEM. */
  readonly csr: string;
  readonly ttlSeconds: number;
  /** ISTIO_META_CERT_SIGNER, for a CA that has several. */
  readonly certSigner: string;
}

/** Signs a request: PEM certificates, leaf first, root last. Rejects when the signal is aborted. */
export type Sign = (request: SignRequest, signal: AbortSignal) => Promise<readonly string[]>;

const CREATE_CERTIFICATE = "/istio.v1.auth.IstioCertificateService/CreateCertificate";
const TIMEOUT_MS = 10_000;

/** A certificate is asked for twice a day, so each request has a connection of its own, with the roots of that moment. */
export function caClient(options: ControlPlaneOptions, log: Logger): Sign {
  return async (request, signal) => {
    let client: Client | undefined;
    try {
      client = await connectControlPlane(options);
      const metadata = await callMetadata(options, log);
      const bytes = Buffer.from(formatRequest(request));
      return readResponse(await call(client, { metadata, bytes, signal }));
    } catch (cause) {
      throw new MeshError("CA_FAILED", `Cannot get a certificate from ${options.address}: ${explain(cause)}`, {
        cause,
      });
    } finally {
      client?.close();
    }
  };
}

interface Call {
  readonly metadata: Metadata;
  readonly bytes: Buffer;
  readonly signal: AbortSignal;
}

function call(client: Client, { metadata, bytes, signal }: Call): Promise<Buffer> {
  const { requestSerialize: write, responseDeserialize: read } = RAW;
  return new Promise((resolve, reject) => {
    const options = { deadline: Date.now() + TIMEOUT_MS };
    const pending = client.makeUnaryRequest(
      CREATE_CERTIFICATE,
      write,
      read,
      bytes,
      metadata,
      options,
      (error, answer) => {
        signal.removeEventListener("abort", cancel);
        if (error === null && answer !== undefined) resolve(answer);
        else reject(error ?? new Error("no answer"));
      },
    );
    const cancel = () => pending.cancel();
    signal.addEventListener("abort", cancel);
    if (signal.aborted) cancel();
  });
}

function formatRequest({ csr, ttlSeconds, certSigner }: SignRequest): Uint8Array {
  // google.protobuf.Struct: one entry "CertSigner" whose value is a string
  const value = new MessageWriter().bytes(3, Buffer.from(certSigner)).finish();
  const entry = new MessageWriter().string(1, "CertSigner").bytes(2, value).finish();
  const metadata = new MessageWriter().bytes(1, entry).finish();
  return new MessageWriter().string(1, csr).varint(3, ttlSeconds).bytes(4, metadata).finish();
}

function readResponse(bytes: Buffer): readonly string[] {
  const chain: string[] = [];
  readMessage(bytes, { bytes: { 1: (certificate) => chain.push(readString(certificate)) } });
  return chain;
}

/** What the person who installed this can do something about. */
function explain(thrown: unknown): string {
  const { code, details } = isServiceError(thrown) ? thrown : { code: undefined, details: errorText(thrown) };
  if (code === status.UNAUTHENTICATED) return `the service account token was refused (${details})`;
  if (code === status.UNAVAILABLE) return `it cannot be reached (${details})`;
  if (code === status.DEADLINE_EXCEEDED) return `no answer in ${TIMEOUT_MS} ms (${details})`;
  return details;
}

function isServiceError(thrown: unknown): thrown is ServiceError {
  return thrown instanceof Error && "code" in thrown && "details" in thrown;
}
