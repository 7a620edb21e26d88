/** Calls to a certificate authority over gRPC, whichever protocol it speaks: repeated while that can help, and explained. */

import { formatDuration } from "@mizzen/go-text/duration";
import { sleep } from "#lib/async/sleep.ts";
import { GrpcError, STATUS } from "#lib/grpc/status.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { type FieldVisitor, readMessage } from "#lib/wire/read.ts";
import { type ControlPlaneOptions, callHeaders, connectControlPlane } from "../../control-plane.ts";
import type { Counter } from "../../metrics.ts";

/** What the clients of all CAs need. */
export interface CaClientInput {
  readonly upstream: ControlPlaneOptions;
  readonly log: Logger;
  /** Calls that were repeated. */
  readonly retries: Counter;
  /** For an answer, once there is a connection. */
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

/** istiod waits up to a minute for a signer of Kubernetes. Who gives up sooner asks for one certificate after the other and never gets any. */
const TIMEOUT_MS = 75_000;
const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 100;
const JITTER = 0.1;
/** What may go away by itself within a second. The rest is left to whoever asks again later, with a new key. */
const PASSING: ReadonlySet<number | undefined> = new Set([
  STATUS.CANCELLED,
  STATUS.DEADLINE_EXCEEDED,
  STATUS.RESOURCE_EXHAUSTED,
  STATUS.ABORTED,
  STATUS.INTERNAL,
  STATUS.UNAVAILABLE,
]);

/** The answer to a call. Each attempt has a connection of its own, with roots and token of that moment. */
export async function callCa(input: CaClientInput, call: CaCall): Promise<Buffer> {
  const { upstream, log, retries, firstPauseMs = FIRST_PAUSE_MS } = input;
  for (let attempt = 1; ; attempt++) {
    try {
      return await callOnce(input, call);
    } catch (cause) {
      const reason = explain(cause);
      if (attempt >= ATTEMPTS || call.signal.aborted || !PASSING.has(codeOf(cause)))
        throw new MeshError("CA_FAILED", `Cannot get a certificate from ${upstream.address}: ${reason}`, { cause });
      const pause = firstPauseMs * 2 ** (attempt - 1) * (1 + JITTER * (Math.random() * 2 - 1));
      log.warn(`ca request failed, starting attempt ${attempt} in ${formatDuration(Math.round(pause))}: ${reason}`);
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

async function callOnce({ upstream, timeoutMs = TIMEOUT_MS }: CaClientInput, call: CaCall): Promise<Buffer> {
  const headers = { ...(await callHeaders(upstream)), ...call.headers };
  const connection = await connectControlPlane(upstream, call.signal);
  try {
    return await connection.unary({ ...call, headers, message: call.bytes, timeoutMs });
  } finally {
    connection.close();
  }
}

/** What the person who installed this can do something about. */
function explain(thrown: unknown): string {
  const code = codeOf(thrown);
  const details = errorText(thrown);
  if (code === STATUS.UNAUTHENTICATED) return `the service account token was refused (${details})`;
  if (code === STATUS.UNAVAILABLE) return `it cannot be reached (${details})`;
  if (code === STATUS.DEADLINE_EXCEEDED) return `it does not answer in time (${details})`;
  return details;
}

function codeOf(thrown: unknown): number | undefined {
  return thrown instanceof GrpcError ? thrown.code : undefined;
}
