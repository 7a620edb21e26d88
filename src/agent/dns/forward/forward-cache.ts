/**
 * Keeps the answers of name servers: as long as they are valid, and beyond that for when no server answers (RFC 8767).
 * Questions that come while the same one is on its way share its answer, if they can take as much.
 */

import type { Query } from "../message.ts";
import { type Random16, random16 } from "../shuffle.ts";
import { addressed, fitted, type KeptAnswer, keptAnswer, questionKey, renewed } from "./kept-answer.ts";

export interface ForwardCacheOptions {
  /** Of all answers together; the least used ones go first. */
  readonly maxBytes?: number;
  /** How long to wait for a server when there is an old answer. */
  readonly patienceMs?: number;
  readonly now?: () => number;
  readonly random?: Random16;
  readonly count: (result: "hit" | "miss" | "stale") => void;
}

interface Asking {
  readonly key: string;
  readonly query: Query;
  readonly maxBytes: number;
  readonly ask: () => Promise<Buffer>;
}

interface Entry {
  readonly answer: KeptAnswer;
  readonly storedAt: number;
  /** Until then no server is asked again: it did not answer a moment ago. */
  restUntil: number;
}

/** A question that is on its way. */
interface Running {
  readonly answer: Promise<Buffer>;
  /** Questions that share its answer. Each holds memory until it comes. */
  sharers: number;
}

/** Many more than a resolver has clients that ask the same at one moment. */
const MAX_SHARERS = 64;
/** What a message costs beside its bytes. */
const ENTRY_BYTES = 400;
const MAX_BYTES = 2 * 1024 * 1024;
const MAX_ANSWER_BYTES = 4_096;
const PATIENCE_MS = 1_800;
const REST_MS = 30_000;
const MAX_STALE_MS = 24 * 3_600_000;
const STALE_TTL_SECONDS = 30;
const SERVER_FAILURE = 2;
const REFUSED = 5;
/** An error of its own, which nobody outside sees. */
const LATE = Symbol("no server answered in time");
const FLOODED = Symbol("too many ask the same");

export class ForwardCache {
  readonly #options: ForwardCacheOptions;
  /** In the order of use, the least recent first. */
  readonly #entries = new Map<string, Entry>();
  readonly #running = new Map<string, Running>();
  #bytes = 0;

  constructor(options: ForwardCacheOptions) {
    this.#options = options;
  }

  /**
   * The answer to a question: at once when it is kept, else what a server says to `ask`. Rejects when it does and there
   * is no old answer.
   */
  answer(query: Query, maxBytes: number, ask: () => Promise<Buffer>): Buffer | Promise<Buffer> {
    const key = questionKey(query);
    if (key === undefined) return ask();
    const entry = this.#entries.get(key);
    const now = this.#now();
    if (entry !== undefined) {
      this.#use(key, entry);
      const ageSeconds = Math.floor((now - entry.storedAt) / 1000);
      if (ageSeconds < entry.answer.lifetimeSeconds) {
        this.#options.count("hit");
        return fitted(
          this.#renewed(entry, query, (ttl) => Math.max(0, ttl - ageSeconds)),
          query,
          maxBytes,
        );
      }
      if (now - entry.storedAt > MAX_STALE_MS) this.#remove(key, entry);
      else return this.#orStale(entry, { key, query, maxBytes, ask });
    }
    this.#options.count("miss");
    return this.#shared({ key, query, maxBytes, ask }).then((answer) =>
      fitted(addressed(answer, query), query, maxBytes),
    );
  }

  /** What a server says or, if none does, what one said before. */
  async #orStale(entry: Entry, asking: Asking): Promise<Buffer> {
    const { query, maxBytes } = asking;
    const { patienceMs = PATIENCE_MS } = this.#options;
    let timer: NodeJS.Timeout | undefined;
    try {
      if (entry.restUntil > this.#now()) throw LATE;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(LATE), patienceMs);
      });
      const answer = await Promise.race([this.#shared(asking), late]);
      const rcode = answer.readUInt16BE(2) & 0x0f;
      if (rcode === SERVER_FAILURE || rcode === REFUSED) throw LATE;
      this.#options.count("miss");
      return fitted(addressed(answer, query), query, maxBytes);
    } catch {
      entry.restUntil = Math.max(entry.restUntil, this.#now() + REST_MS);
      this.#options.count("stale");
      return fitted(
        this.#renewed(entry, query, () => STALE_TTL_SECONDS),
        query,
        maxBytes,
      );
    } finally {
      clearTimeout(timer);
    }
  }

  /** Asks, unless the same question is on its way, and keeps the answer. What was cut for UDP is of no use over TCP. */
  #shared({ key, query, maxBytes, ask }: Asking): Promise<Buffer> {
    const runningKey = `${maxBytes} ${key}`;
    const running = this.#running.get(runningKey);
    if (running !== undefined) {
      if (running.sharers >= MAX_SHARERS) return Promise.reject(FLOODED);
      running.sharers++;
      return running.answer;
    }
    const asked = ask()
      .then((answer) => {
        this.#store(key, answer, query.questionEnd);
        return answer;
      })
      .finally(() => this.#running.delete(runningKey));
    // Whoever waited may have gone on with an old answer.
    asked.catch(() => undefined);
    this.#running.set(runningKey, { answer: asked, sharers: 1 });
    return asked;
  }

  #store(key: string, bytes: Buffer, questionEnd: number): void {
    if (bytes.length > MAX_ANSWER_BYTES) return;
    const answer = keptAnswer(bytes, questionEnd);
    if (answer === undefined) return;
    const before = this.#entries.get(key);
    if (before !== undefined) this.#remove(key, before);
    this.#entries.set(key, { answer, storedAt: this.#now(), restUntil: 0 });
    this.#bytes += cost(answer);
    const { maxBytes = MAX_BYTES } = this.#options;
    for (const [oldest, entry] of this.#entries) {
      if (this.#bytes <= maxBytes) break;
      this.#remove(oldest, entry);
    }
  }

  #renewed({ answer }: Entry, query: Query, ttlOf: (ttl: number) => number): Buffer {
    return renewed(answer, query, { ttlOf, random: this.#options.random ?? random16 });
  }

  #use(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#entries.set(key, entry);
  }

  #remove(key: string, { answer }: Entry): void {
    if (this.#entries.delete(key)) this.#bytes -= cost(answer);
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

function cost({ bytes }: KeptAnswer): number {
  return bytes.length + ENTRY_BYTES;
}
