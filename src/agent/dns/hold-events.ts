import type { EventEmitter } from "node:events";

/** Events that wait for somebody to take them. */
export interface Held<Args extends unknown[]> {
  /** Gives what has waited, and from then on what comes. Once. */
  take(listener: (...args: Args) => void): void;
}

/** More than come in the moment between the opening of a socket and its service; a flood must not fill the memory. */
const MAX_HELD = 1_000;

/** Keeps what is emitted until there is a listener. Without it the event would be lost. */
export function holdEvents<Args extends unknown[]>(emitter: EventEmitter, event: string): Held<Args> {
  const waiting: Args[] = [];
  const hold = (...args: Args) => {
    if (waiting.length < MAX_HELD) waiting.push(args);
  };
  emitter.on(event, hold as (...args: unknown[]) => void);
  return {
    take: (listener) => {
      emitter.off(event, hold as (...args: unknown[]) => void);
      emitter.on(event, listener as (...args: unknown[]) => void);
      for (const args of waiting.splice(0)) listener(...args);
    },
  };
}
