/**
 * Answers the debug questions of one call, one after the other: an answer is made only when the one before was read and there is room
 * for it, so that a caller who asks and does not read costs no memory.
 */
import type { ServerCall } from "#lib/grpc/server-call.ts";
import { STATUS } from "#lib/grpc/status.ts";
import type { SendBudget } from "#model/ports.ts";
import type { Clock } from "../timing/clock.ts";
import { Deadline } from "../timing/deadline.ts";
import { type Asked, type DebugQuestion, debugResponse } from "./debug-question.ts";
import { Refusal } from "./refusal.ts";

/** More than programs ask before they read. */
const MAX_WAITING = 16;

export interface DebugDeskOptions {
  readonly call: ServerCall;
  readonly budget: SendBudget;
  readonly clock: Clock;
  /** A caller that does not read an answer for so long is cut off. */
  readonly sendMs: number;
  /** Ends the call for that reason. */
  readonly fail: (thrown: unknown) => void;
}

interface Waiting {
  readonly question: DebugQuestion;
  readonly asked: Asked;
}

export class DebugDesk {
  readonly #options: DebugDeskOptions;
  readonly #waiting: Waiting[] = [];
  readonly #leaving: Deadline;
  #isBusy = false;
  #isClosed = false;
  #unreadBytes = 0;
  #cancel: () => void = () => undefined;
  #done: () => void = () => undefined;

  constructor(options: DebugDeskOptions) {
    this.#options = options;
    const { call, clock, sendMs, fail } = options;
    this.#leaving = new Deadline(clock, sendMs, () => {
      // A status would wait behind the answer, which would stay in memory for as long.
      call.cut();
      fail(new Refusal(STATUS.DEADLINE_EXCEEDED, `No debug answer was read for ${sendMs} ms`));
    });
  }

  ask(question: DebugQuestion, asked: Asked): void {
    if (this.#waiting.length >= MAX_WAITING) {
      throw new Refusal(STATUS.RESOURCE_EXHAUSTED, `${MAX_WAITING} debug questions wait for answers: read them first`);
    }
    this.#waiting.push({ question, asked });
    this.#next();
  }

  /** Calls back when all questions are answered and the answers were read. */
  finish(done: () => void): void {
    this.#done = done;
    if (!this.#isBusy) done();
  }

  /** The call is over. */
  close(): void {
    this.#isClosed = true;
    this.#cancel();
    this.#leaving.stop();
    this.#read();
  }

  #next(): void {
    const next = this.#waiting[0];
    if (this.#isBusy || this.#isClosed || next === undefined) return;
    this.#isBusy = true;
    const { budget, fail } = this.#options;
    const cancel = budget.whenRoom(() => this.#answer(next));
    if (cancel !== undefined) this.#cancel = cancel;
    else fail(new Refusal(STATUS.RESOURCE_EXHAUSTED, "Too many debug questions: try again later"));
  }

  #answer({ question, asked }: Waiting): void {
    const { call, budget, clock, fail } = this.#options;
    this.#waiting.shift();
    try {
      const response = debugResponse(question, asked);
      this.#unreadBytes = response.length;
      budget.take(response.length);
      this.#leaving.begin(clock.now());
      call.send(response, () => {
        if (this.#isClosed) return;
        this.#read();
        this.#isBusy = false;
        this.#next();
        if (!this.#isBusy) this.#done();
      });
    } catch (thrown) {
      fail(thrown);
    }
  }

  #read(): void {
    this.#leaving.end();
    const bytes = this.#unreadBytes;
    this.#unreadBytes = 0;
    this.#options.budget.giveBack(bytes);
  }
}
