import { STATUS } from "#lib/grpc/status.ts";
import type { DeltaRequest } from "#protocol/messages/delta-request.ts";
import type { Resource } from "#protocol/resource.ts";
import type { States } from "#protocol/shared-steps.ts";
import { Refusal } from "./refusal.ts";

/** Envoys and agents ask for nine types at most. Each further one costs time in every later step of the stream. */
const MAX_TYPES = 32;
/** Of all names together; those of 50,000 clusters fit. */
const MAX_NAME_LENGTH = 8 * 1024 * 1024;
const NO_VERSIONS: ReadonlyMap<string, unknown> = new Map();

/** Limits what a stream asks for, over all its requests. */
export class StreamLimits {
  readonly #maxNames: number;
  /** Of the names that it asked for, at least: those that it gave up are counted until the sum is too large. */
  #nameLength = 0;

  constructor(maxNames: number) {
    this.#maxNames = maxNames;
  }

  /** Refuses a request that asks for too much. `types` are the states that the request leads to. */
  check(types: States<Resource>, { subscribe, initialVersions }: DeltaRequest): void {
    if (types.size > MAX_TYPES) throw exhausted(`${types.size} types: ${MAX_TYPES} are allowed`);
    const count = types.values().reduce((sum, { names, initial }) => sum + names.size + (initial?.size ?? 0), 0);
    if (count > this.#maxNames) throw exhausted(`${count} names: ${this.#maxNames} are allowed`);
    this.#nameLength += lengthOf(subscribe) + lengthOf(initialVersions.keys());
    if (this.#nameLength <= MAX_NAME_LENGTH) return;
    // Names that it gave up again were counted too, and so were those that it repeated.
    const held = types
      .values()
      .flatMap(({ names, initial = NO_VERSIONS }) => [lengthOf(names), lengthOf(initial.keys())]);
    this.#nameLength = held.reduce((sum, length) => sum + length, 0);
    if (this.#nameLength > MAX_NAME_LENGTH) throw exhausted(`names of more than ${MAX_NAME_LENGTH} characters`);
  }
}

function exhausted(what: string): Refusal {
  return new Refusal(STATUS.RESOURCE_EXHAUSTED, `Cannot subscribe to ${what}`);
}

/** Of all names together. */
function lengthOf(names: Iterable<string>): number {
  let sum = 0;
  for (const name of names) sum += name.length;
  return sum;
}
