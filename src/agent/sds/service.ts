/**
 * `envoy.service.secret.v3.SecretDiscoveryService`: gives Envoy the secrets it asks for, and each of them again when it
 * changes. A secret that is not there yet is sent when it is: Envoy waits for it, so there is nothing to gain by an error.
 */
import { joined } from "#lib/grpc/messages.ts";
import type { Methods, ServerCall } from "#lib/grpc/server-call.ts";
import { GrpcError, STATUS } from "#lib/grpc/status.ts";
import { unaryMethod } from "#lib/grpc/unary-method.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { readField, readText } from "#lib/wire/read.ts";
import type { AgentMetrics } from "../metrics.ts";
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
  readonly metrics: Pick<AgentMetrics, "secretSendSeconds" | "refusedSecrets">;
  /** Asked for each secret, since the list of revoked certificates may come and go. */
  readonly encode?: () => EncodeOptions;
  /** How long a single request waits for a secret, unless it has a shorter deadline of its own. */
  readonly fetchTimeoutMs?: number;
}

const SERVICE = "/envoy.service.secret.v3.SecretDiscoveryService";
/** `DiscoveryRequest.node` and `Node.id`. */
const NODE_FIELD = 2;
const NODE_ID_FIELD = 1;
const FETCH_TIMEOUT_MS = 10_000;
/** Envoy has a stream for each secret. */
const MAX_CALLS = 1_024;
/** Names that all calls together watch; names of files are watched on disk. */
const MAX_WATCHES = 4_096;
/** Names of one request that is answered as a whole. */
const MAX_FETCHED = 64;
/** A name may consist of two paths. */
const MAX_NAME_CHARS = 8_192;

/** What all calls together hold. */
interface Held {
  calls: number;
  watches: number;
}

export function secretDiscoveryService(input: SecretServiceInput): Methods {
  const held: Held = { calls: 0, watches: 0 };
  return {
    [`${SERVICE}/StreamSecrets`]: (call) => new SecretStream(call, SOTW, { ...input, held }).serve(),
    [`${SERVICE}/DeltaSecrets`]: (call) => new SecretStream(call, DELTA, { ...input, held }).serve(),
    [`${SERVICE}/FetchSecrets`]: unaryMethod(async (request, call) => {
      let proxy: string | undefined;
      try {
        const names = namesIn(request);
        proxy = readText(readField(request, NODE_FIELD) ?? new Uint8Array(), NODE_ID_FIELD);
        const leave = enter(held);
        return await fetchSecrets(names, call, input).finally(leave);
      } catch (thrown) {
        const what =
          proxy === undefined
            ? "Close connection. Error"
            : `Failed to get secret for proxy "${proxy}" from secret cache`;
        input.log.warn(`${what}: ${errorText(thrown)}`);
        throw refusal(thrown);
      }
    }),
  };
}

/** What a call ends with. */
function refusal(thrown: unknown): GrpcError {
  return thrown instanceof GrpcError ? thrown : new GrpcError(STATUS.INVALID_ARGUMENT, errorText(thrown));
}

/** Counts a call; returns the way to say, once, that it has ended. Throws when there are too many. */
function enter(held: Held): () => void {
  if (held.calls >= MAX_CALLS) throw new GrpcError(STATUS.RESOURCE_EXHAUSTED, `${MAX_CALLS} calls are running`);
  held.calls++;
  let isIn = true;
  return () => {
    if (isIn) held.calls--;
    isIn = false;
  };
}

function checkName(name: string): void {
  if (name.length > MAX_NAME_CHARS)
    throw new GrpcError(STATUS.INVALID_ARGUMENT, `the name of a secret has more than ${MAX_NAME_CHARS} characters`);
}

function sourceOf(name: string, { sources }: SecretServiceInput): SecretSource {
  checkName(name);
  const source = sources.find((candidate) => candidate.owns(name));
  if (source === undefined) throw new GrpcError(STATUS.NOT_FOUND, `the agent has no secret ${name}`);
  return source;
}

class SecretStream {
  readonly #call: ServerCall;
  readonly #kind: SecretStreamKind;
  readonly #input: SecretServiceInput & { readonly held: Held };
  #leave: () => void = () => undefined;
  /** How to stop watching, by name. */
  readonly #watches = new Map<string, () => void>();
  #responses = 0;

  constructor(call: ServerCall, kind: SecretStreamKind, input: SecretServiceInput & { readonly held: Held }) {
    this.#call = call;
    this.#kind = kind;
    this.#input = input;
  }

  serve(): void {
    try {
      this.#leave = enter(this.#input.held);
    } catch (thrown) {
      this.#call.end(refusal(thrown));
      return;
    }
    this.#call.gone.addEventListener("abort", () => this.#stopAll());
    this.#call.serve({
      message: (message) => {
        try {
          this.#receive(joined(message));
        } catch (thrown) {
          this.#fail(refusal(thrown));
        }
      },
      end: () => {
        this.#stopAll();
        this.#call.end();
      },
    });
  }

  #receive(bytes: Buffer): void {
    const { refused, subscribe, unsubscribe } = this.#kind.parse(bytes, new Set(this.#watches.keys()));
    if (refused !== undefined) {
      this.#input.log.warn(`Envoy refused ${[...this.#watches.keys()].join(", ")}: ${refused}`);
      this.#input.metrics.refusedSecrets.add();
    }
    for (const name of unsubscribe) this.#stop(name);
    if (subscribe.length > 0) this.#input.log.debug("secrets asked for", { names: subscribe });
    for (const name of subscribe) {
      const source = sourceOf(name, this.#input);
      this.#stop(name);
      const { held } = this.#input;
      if (held.watches >= MAX_WATCHES)
        throw new GrpcError(STATUS.RESOURCE_EXHAUSTED, `${MAX_WATCHES} secrets are watched`);
      held.watches++;
      this.#watches.set(
        name,
        source.watch(name, (secret) => this.#send(secret)),
      );
    }
  }

  #send(secret: Secret): void {
    const number = String(++this.#responses);
    const encoded = encodeSecret(secret, this.#input.encode?.());
    const startedAt = performance.now();
    this.#call.send(this.#kind.format({ secrets: [encoded], version: number, nonce: number }));
    this.#input.log.debug("secret sent", { resource: secret.name, nonce: number });
    this.#input.metrics.secretSendSeconds.observe((performance.now() - startedAt) / 1000);
  }

  #fail(error: GrpcError): void {
    this.#input.log.warn(`The stream of secrets ends: ${error.message}`);
    this.#stopAll();
    this.#call.end(error);
  }

  #stop(name: string): void {
    this.#watches.get(name)?.();
    if (this.#watches.delete(name)) this.#input.held.watches--;
  }

  #stopAll(): void {
    for (const name of [...this.#watches.keys()]) this.#stop(name);
    this.#leave();
  }
}

/** Of the secrets that a request asks for. Throws when it asks for none. */
function namesIn(request: Buffer): readonly string[] {
  const { subscribe: names } = SOTW.parse(request, new Set());
  if (names.length > MAX_FETCHED)
    throw new GrpcError(STATUS.INVALID_ARGUMENT, `the request names more than ${MAX_FETCHED} secrets`);
  if (names.length === 0) throw new GrpcError(STATUS.INVALID_ARGUMENT, "the request names no secret");
  return names;
}

/** One answer with all that was asked for, once it is there. */
async function fetchSecrets(
  names: readonly string[],
  call: ServerCall,
  input: SecretServiceInput,
): Promise<Uint8Array> {
  const secrets = await Promise.all(names.map((name) => firstSecret(name, call, input)));
  return SOTW.format({ secrets, version: "1", nonce: "1" });
}

function firstSecret(name: string, call: ServerCall, input: SecretServiceInput): Promise<EncodedSecret> {
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
      () => settle(() => reject(new GrpcError(STATUS.UNAVAILABLE, `secret ${name} is not there yet`))),
      fetchTimeoutMs,
    );
    call.gone.addEventListener("abort", () => settle(() => reject(new GrpcError(STATUS.CANCELLED, "cancelled"))));
    stop = source.watch(name, (secret) => settle(() => resolve(encodeSecret(secret, encode?.()))));
    if (settled) stop();
  });
}
