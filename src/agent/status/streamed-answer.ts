/** Answers of any size, read through one buffer: a scrape would otherwise leave megabytes of buffers for the collector. */
import { connect, type Socket } from "node:net";
import { MeshError } from "#lib/mesh-error.ts";
import { formatRequest, giveUp, type HttpRequest, specialConnection } from "../http-client.ts";
import { type AnswerHead, AnswerReader } from "./answer-reader.ts";

/** What the kernel keeps for a connection, at most. */
const BUFFER_BYTES = 128 * 1024;

/** Uses parts of the body. They hold until it returns, or, where it gives a promise, until that is resolved. */
export type Take = (parts: readonly Buffer[]) => Promise<void> | undefined;

export interface StreamedAnswer extends AnswerHead {
  /** Resolves when the body has ended; rejects when it breaks off or `take` throws. */
  read(take: Take): Promise<void>;
  destroy(reason?: Error): void;
}

/** Sends a GET, and gives the answer when it begins. No connection is kept. */
export async function openAnswer(wanted: HttpRequest): Promise<StreamedAnswer> {
  const { signal, settled } = giveUp(wanted);
  const body = new Body();
  try {
    const socket = (await specialConnection(wanted, signal)) ?? plainConnection(wanted, body);
    const cut = () => body.destroy(signal.reason);
    signal.addEventListener("abort", cut, { once: true });
    socket.once("close", () => {
      settled();
      signal.removeEventListener("abort", cut);
    });
    body.from(socket);
    if (signal.aborted) cut();
    socket.write(requestText(wanted));
    const head = await body.head;
    return { ...head, read: (take) => body.read(take), destroy: (reason) => body.destroy(reason) };
  } catch (cause) {
    settled();
    body.destroy();
    throw cause instanceof MeshError ? cause : new MeshError("HTTP_FAILED", formatRequest(wanted), { cause });
  }
}

function plainConnection({ host, port }: HttpRequest, body: Body): Socket {
  const buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  const callback = (length: number) => {
    body.arrive(buffer.subarray(0, length));
    return true;
  };
  return connect({ host, port, onread: { buffer, callback } });
}

function requestText({ host, port, path, headers = {} }: HttpRequest): string {
  const authority = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const lines = Object.entries({ host: authority, connection: "close", ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  const text = [`GET ${path} HTTP/1.1`, ...lines];
  // Nobody gets a second request into the first.
  if (text.some((line) => /[\r\n]/.test(line)) || /\s/.test(path))
    throw new MeshError("HTTP_FAILED", `${JSON.stringify(path)} is no path that can be asked for`);
  return `${text.join("\r\n")}\r\n\r\n`;
}

/** What comes over a connection, which waits while nobody can use it. */
class Body {
  readonly #reader = new AnswerReader();
  readonly #begun = Promise.withResolvers<AnswerHead>();
  readonly #ended = Promise.withResolvers<void>();
  #socket: Socket | undefined;
  #take: Take | undefined;
  /** What came with the head, before there was anybody to take it. */
  #early: readonly Buffer[] = [];
  /** Parts are in use. */
  #busy = false;

  constructor() {
    // Failures are told to whoever waits; there may be nobody.
    this.#begun.promise.catch(() => undefined);
    this.#ended.promise.catch(() => undefined);
  }

  get head(): Promise<AnswerHead> {
    return this.#begun.promise;
  }

  from(socket: Socket): void {
    this.#socket = socket;
    // A connection that reads into a buffer of ours has no such event.
    socket.on("data", (bytes: Buffer) => this.arrive(bytes));
    socket.on("error", (reason) => this.destroy(reason));
    socket.on("close", () => this.#guard(() => this.#reader.close()));
  }

  /** The bytes may change as soon as the socket reads again. */
  arrive(bytes: Buffer): void {
    this.#guard(() => {
      const parts = this.#reader.read(bytes);
      if (this.#take !== undefined) this.#give(this.#take, parts);
      else if (this.#reader.head !== undefined) {
        this.#early = parts.map((part) => Buffer.from(part));
        this.#socket?.pause();
        this.#begun.resolve(this.#reader.head);
      }
    });
  }

  read(take: Take): Promise<void> {
    this.#take = take;
    this.#guard(() => this.#give(take, this.#early));
    this.#early = [];
    if (!this.#busy) this.#socket?.resume();
    return this.#ended.promise;
  }

  destroy(reason: unknown = new MeshError("HTTP_FAILED", "given up")): void {
    this.#begun.reject(reason);
    this.#ended.reject(reason);
    this.#socket?.destroy();
  }

  #give(take: Take, parts: readonly Buffer[]): void {
    const used = parts.length === 0 ? undefined : take(parts);
    if (used === undefined) return;
    this.#busy = true;
    this.#socket?.pause();
    used.then(
      () => {
        this.#busy = false;
        this.#socket?.resume();
        this.#endIfComplete();
      },
      (reason) => this.destroy(reason),
    );
  }

  #guard(act: () => void): void {
    try {
      act();
      this.#endIfComplete();
    } catch (reason) {
      this.destroy(reason);
    }
  }

  #endIfComplete(): void {
    if (!this.#reader.isComplete || this.#busy || this.#take === undefined) return;
    this.#ended.resolve();
    this.#socket?.destroy();
  }
}
