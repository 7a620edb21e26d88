/** The last changes and pushes, in rings of fixed size. */
import type { ChangeRecord, PushHistory, PushRecord } from "#model/push-record.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { snapshotChanges } from "./snapshot-changes.ts";

const MAX_CHANGES = 200;
const MAX_PUSHES = 5_000;
/** Of each change; the rest is counted. */
const MAX_OBJECTS = 50;

/** What becomes known of a push later. */
export type Outcome = Required<Pick<PushRecord, "result">> & Pick<PushRecord, "error" | "culprits">;

/** What is known of a push when it goes. */
export type SentPush = Omit<PushRecord, "change" | "at" | "answeredAfter" | keyof Outcome>;

/** A push that is still to be answered. */
export interface OpenPush {
  answered(outcome: Outcome, now: number): void;
}

export class PushJournal implements PushHistory {
  readonly #changes = new Ring<ChangeRecord>(MAX_CHANGES);
  readonly #pushes = new Ring<JournalEntry>(MAX_PUSHES);
  #released: Snapshot | undefined;
  #count = 0;

  changes(): readonly ChangeRecord[] {
    return this.#changes.items();
  }

  pushes(): readonly PushRecord[] {
    return this.#pushes.items().map((entry) => entry.record());
  }

  /** From now on pushes are of this snapshot. The first one is no change. */
  released(snapshot: Snapshot, { changedAt, releasedAt }: Pick<ChangeRecord, "changedAt" | "releasedAt">): void {
    const before = this.#released;
    this.#released = snapshot;
    if (before === undefined) return;
    const objects = snapshotChanges(before, snapshot);
    this.#count++;
    this.#changes.add({
      id: this.#count,
      changedAt,
      releasedAt,
      objects: objects.slice(0, MAX_OBJECTS),
      objectCount: objects.length,
    });
  }

  sent(push: SentPush, at: number): OpenPush {
    const entry = new JournalEntry(push, at, this.#count);
    this.#pushes.add(entry);
    return entry;
  }
}

/** A push as it is noted; what people read is made of it when they ask. */
class JournalEntry implements OpenPush {
  readonly #push: SentPush;
  readonly #at: number;
  readonly #change: number;
  #outcome: Outcome | undefined;
  #answeredAt = 0;

  constructor(push: SentPush, at: number, change: number) {
    this.#push = push;
    this.#at = at;
    this.#change = change;
  }

  answered(outcome: Outcome, now: number): void {
    this.#outcome = outcome;
    this.#answeredAt = now;
  }

  record(): PushRecord {
    const sent = { ...this.#push, at: this.#at, change: this.#change, result: "sent" } as const;
    if (this.#outcome === undefined) return sent;
    return { ...sent, ...this.#outcome, answeredAfter: this.#answeredAt - this.#at };
  }
}

class Ring<T> {
  readonly #items: T[] = [];
  readonly #size: number;
  #next = 0;

  constructor(size: number) {
    this.#size = size;
  }

  add(item: T): void {
    this.#items[this.#next] = item;
    this.#next = (this.#next + 1) % this.#size;
  }

  /** Oldest first. */
  items(): readonly T[] {
    return [...this.#items.slice(this.#next), ...this.#items.slice(0, this.#next)];
  }
}
