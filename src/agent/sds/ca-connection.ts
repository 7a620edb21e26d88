/** Calls to a certificate authority over gRPC, whichever protocol it speaks: repeated while that can help, and explained. */
import { type Client, type Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { sleep } from "#lib/async/sleep.ts";
import { formatDuration } from "#lib/duration.ts";
import type { Logger } from "#lib/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { type FieldVisitor, readMessage } from "#lib/wire/read.ts";
import { type ControlPlaneOptions, callMetadata, connectControlPlane } from "../control-plane.ts";
import type { Counter } from "../metrics.ts";
import { RAW } from "../unix-server.ts";

/** What the clients of all CAs need. */
export interface CaClientInput {
  readonly upstream: ControlPlaneOptions;
  readonly log: Logger;
  /** Calls that were repeated. */
  readonly retries: Counter;
  /** For one call. */
  readonly timeoutMs?: number;
  /** Length of the first pause; each further one is twice as long. */
  readonly firstPauseMs?: number;
}

export interface CaCall {
  /** `/package.Service/Method` */
  readonly path: string;
  readonly bytes: Uint8Array;
  /** Beside those of all calls. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

const TIMEOUT_MS = 10_000;
const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 100;
const JITTER = 0.1;
/** What may go away by itself within a second. The rest is left to whoever asks again later, with a new key. */
const PASSING: ReadonlySet<status | undefined> = new Set([
  status.CANCELLED,
  status.DEADLINE_EXCEEDED,
  status.RESOURCE_EXHAUSTED,
  status.ABORTED,
  status.INTERNAL,
  status.UNAVAILABLE,
]);

/** The answer to a call. Each attempt has a connection of its own, with roots and token of that moment. */
export async function callCa(input: CaClientInput, call: CaCall): Promise<Buffer> {
  const { upstream, log, retries, timeoutMs = TIMEOUT_MS, firstPauseMs = FIRST_PAUSE_MS } = input;
  for (let attempt = 1; ; attempt++) {
    try {
      return await callOnce(input, call);
    } catch (cause) {
      if (attempt >= ATTEMPTS || call.signal.aborted || !PASSING.has(serviceError(cause)?.code)) {
        const message = `Cannot get a certificate from ${upstream.address}: ${explain(cause, timeoutMs)}`;
        throw new MeshError("CA_FAILED", message, { cause });
      }
      const pause = firstPauseMs * 2 ** (attempt - 1) * (1 + JITTER * (Math.random() * 2 - 1));
      log.warn(`ca request failed, starting attempt ${attempt} in ${formatDuration(Math.round(pause))}`);
      retries.add();
      await sleep(pause, call.signal);
    }
  }
}

/** Reads a message that a CA answered with. Throws when it is none. */
export function readAnswer(bytes: Uint8Array, visitor: FieldVisitor): void {
  try {
    readMessage(bytes, visitor);
  } catch (cause) {
    throw new MeshError("CA_ANSWER_UNUSABLE", "The CA answered with something that is no message", { cause });
  }
}

async function callOnce({ upstream, log, timeoutMs = TIMEOUT_MS }: CaClientInput, call: CaCall): Promise<Buffer> {
  let client: Client | undefined;
  try {
    client = await connectControlPlane(upstream);
    const metadata = await callMetadata(upstream, log);
    for (const [name, value] of Object.entries(call.headers ?? {})) metadata.set(name, value);
    return await send(client, { ...call, metadata, timeoutMs });
  } finally {
    client?.close();
  }
}

function send(
  client: Client,
  { path, bytes, metadata, signal, timeoutMs }: CaCall & { readonly metadata: Metadata; readonly timeoutMs: number },
): Promise<Buffer> {
  const { requestSerialize: write, responseDeserialize: read } = RAW;
  return new Promise((resolve, reject) => {
    const options = { deadline: Date.now() + timeoutMs };
    const request = Buffer.from(bytes);
    const pending = client.makeUnaryRequest(path, write, read, request, metadata, options, (error, answer) => {
      signal.removeEventListener("abort", cancel);
      if (error === null && answer !== undefined) resolve(answer);
      else reject(error ?? new Error("no answer"));
    });
    const cancel = () => pending.cancel();
    signal.addEventListener("abort", cancel);
    if (signal.aborted) cancel();
  });
}

/** What the person who installed this can do something about. */
function explain(thrown: unknown, timeoutMs: number): string {
  const { code, details } = serviceError(thrown) ?? { code: undefined, details: errorText(thrown) };
  if (code === status.UNAUTHENTICATED) return `the service account token was refused (${details})`;
  if (code === status.UNAVAILABLE) return `it cannot be reached (${details})`;
  if (code === status.DEADLINE_EXCEEDED) return `no answer in ${timeoutMs} ms (${details})`;
  return details;
}

function serviceError(thrown: unknown): ServiceError | undefined {
  return thrown instanceof Error && "code" in thrown && "details" in thrown ? (thrown as ServiceError) : undefined;
}
