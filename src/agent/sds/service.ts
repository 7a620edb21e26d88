/**
 * `envoy.service.secret.v3.SecretDiscoveryService`: gives Envoy the secrets it asks for, and each of them again when it
 * changes. A secret that is not there yet is sent when it is: Envoy waits for it, so there is nothing to gain by an error.
 */
import {
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServiceError,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import type { Logger } from "#lib/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { RAW, type UnixService } from "../unix-server.ts";
import {
  DELTA,
  type EncodedSecret,
  type EncodeOptions,
  encodeSecret,
  type SecretStreamKind,
  SOTW,
} from "./messages.ts";
import type { Secret, SecretSource } from "./secret.ts";

export interface SecretServiceInput {
  readonly sources: readonly SecretSource[];
  readonly log: Logger;
  /** Asked for each secret, since the list of revoked certificates may come and go. */
  readonly encode?: () => EncodeOptions;
  /** How long a single request waits for a secret, unless it has a shorter deadline of its own. */
  readonly fetchTimeoutMs?: number;
}

type StreamCall = ServerDuplexStream<Buffer, Buffer>;
type FetchCall = ServerUnaryCall<Buffer, Buffer>;

const SERVICE = "/envoy.service.secret.v3.SecretDiscoveryService";
const FETCH_TIMEOUT_MS = 10_000;

export function secretDiscoveryService(input: SecretServiceInput): UnixService {
  const method = (name: string, stream: boolean) => ({
    path: `${SERVICE}/${name}`,
    requestStream: stream,
    responseStream: stream,
    ...RAW,
  });
  const stream = (kind: SecretStreamKind) => (call: StreamCall) => new SecretStream(call, kind, input).serve();
  return {
    definition: {
      StreamSecrets: method("StreamSecrets", true),
      DeltaSecrets: method("DeltaSecrets", true),
      FetchSecrets: method("FetchSecrets", false),
    },
    implementation: {
      StreamSecrets: stream(SOTW),
      DeltaSecrets: stream(DELTA),
      FetchSecrets: (call: FetchCall, answer: sendUnaryData<Buffer>) => {
        fetchSecrets(call, input).then(
          (response) => answer(null, response),
          (thrown: unknown) => {
            input.log.warn(`Secrets cannot be given: ${errorText(thrown)}`);
            answer(
              thrown instanceof Refusal
                ? thrown.asError()
                : { code: status.INVALID_ARGUMENT, details: errorText(thrown) },
            );
          },
        );
      },
    },
  };
}

/** An answer that ends a call. */
class Refusal extends Error {
  readonly code: status;

  constructor(code: status, message: string) {
    super(message);
    this.code = code;
  }

  asError(): Pick<ServiceError, "code" | "details"> {
    return { code: this.code, details: this.message };
  }
}

function sourceOf(name: string, { sources }: SecretServiceInput): SecretSource {
  const source = sources.find((candidate) => candidate.owns(name));
  if (source === undefined) throw new Refusal(status.NOT_FOUND, `the agent has no secret ${name}`);
  return source;
}

class SecretStream {
  readonly #call: StreamCall;
  readonly #kind: SecretStreamKind;
  readonly #input: SecretServiceInput;
  /** How to stop watching, by name. */
  readonly #watches = new Map<string, () => void>();
  #responses = 0;

  constructor(call: StreamCall, kind: SecretStreamKind, input: SecretServiceInput) {
    this.#call = call;
    this.#kind = kind;
    this.#input = input;
  }

  serve(): void {
    this.#call.on("data", (bytes: Buffer) => {
      try {
        this.#receive(bytes);
      } catch (thrown) {
        this.#fail(thrown instanceof Refusal ? thrown : new Refusal(status.INVALID_ARGUMENT, errorText(thrown)));
      }
    });
    this.#call.on("cancelled", () => this.#stopAll());
    this.#call.on("error", () => this.#stopAll());
    this.#call.on("end", () => {
      this.#stopAll();
      this.#call.end();
    });
  }

  #receive(bytes: Buffer): void {
    const { refused, subscribe, unsubscribe } = this.#kind.parse(bytes, new Set(this.#watches.keys()));
    if (refused !== undefined)
      this.#input.log.warn(`Envoy refused ${[...this.#watches.keys()].join(", ")}: ${refused}`);
    for (const name of unsubscribe) this.#stop(name);
    for (const name of subscribe) {
      const source = sourceOf(name, this.#input);
      this.#stop(name);
      this.#watches.set(
        name,
        source.watch(name, (secret) => this.#send(secret)),
      );
    }
  }

  #send(secret: Secret): void {
    const number = String(++this.#responses);
    const encoded = encodeSecret(secret, this.#input.encode?.());
    this.#call.write(this.#kind.format({ secrets: [encoded], version: number, nonce: number }));
  }

  #fail(refusal: Refusal): void {
    this.#input.log.warn(`The stream of secrets ends: ${refusal.message}`);
    this.#stopAll();
    this.#call.emit("error", refusal.asError());
  }

  #stop(name: string): void {
    this.#watches.get(name)?.();
    this.#watches.delete(name);
  }

  #stopAll(): void {
    for (const name of [...this.#watches.keys()]) this.#stop(name);
  }
}

/** One answer with all that was asked for, once it is there. */
async function fetchSecrets(call: FetchCall, input: SecretServiceInput): Promise<Buffer> {
  const { subscribe: names } = SOTW.parse(call.request, new Set());
  if (names.length === 0) throw new Refusal(status.INVALID_ARGUMENT, "the request names no secret");
  const secrets = await Promise.all(names.map((name) => firstSecret(name, call, input)));
  return SOTW.format({ secrets, version: "1", nonce: "1" });
}

function firstSecret(name: string, call: FetchCall, input: SecretServiceInput): Promise<EncodedSecret> {
  const source = sourceOf(name, input);
  const { fetchTimeoutMs = FETCH_TIMEOUT_MS, encode } = input;
  return new Promise((resolve, reject) => {
    let stop: (() => void) | undefined;
    let settled = false;
    const settle = (finish: () => void) => {
      settled = true;
      clearTimeout(timer);
      stop?.();
      finish();
    };
    const timer = setTimeout(
      () => settle(() => reject(new Refusal(status.UNAVAILABLE, `secret ${name} is not there yet`))),
      fetchTimeoutMs,
    );
    call.on("cancelled", () => settle(() => reject(new Refusal(status.CANCELLED, "cancelled"))));
    stop = source.watch(name, (secret) => settle(() => resolve(encodeSecret(secret, encode?.()))));
    if (settled) stop();
  });
}
