/** Names of the world outside that were asked for in a mesh without a way out. */

/** Enough to see what is missing; a program that asks for ever more of them is not listened to. */
const MAX_NAMES = 20;
const SHOWN = 3;

export class RefusedNames {
  readonly #byAsker = new Map<string, Set<string>>();
  #count = 0;

  /** True for a name that this workload had not asked for. */
  add(asker: string, name: string): boolean {
    const names = this.#byAsker.get(asker) ?? new Set<string>();
    if (names.has(name) || this.#count >= MAX_NAMES) return false;
    this.#count++;
    this.#byAsker.set(asker, names.add(name));
    return true;
  }

  /** One line for each workload that asked. */
  notes(): readonly string[] {
    return [...this.#byAsker].map(([asker, names]) => describeRefused(asker, [...names]));
  }
}

/** What happened, and how to get what was wanted. */
export function describeRefused(asker: string, names: readonly string[]): string {
  const shown = names.slice(0, SHOWN).join(", ");
  const more = names.length > SHOWN ? ` and ${names.length - SHOWN} more` : "";
  return `${asker} asked for ${shown}${more}, but this mesh has no way out: take it down and start it with \`mizzen up --egress\``;
}
