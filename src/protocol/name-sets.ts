/**
 * Sets of names, each held once however many ask for it: proxies of one view ask for the same thousands of names. A set that
 * nobody holds any more is forgotten.
 */
export class NameSets {
  /** Those that were asked for last come first. */
  #kept: readonly WeakRef<ReadonlySet<string>>[] = [];

  /** A set of these names, perhaps the very one. */
  shared(names: ReadonlySet<string>): ReadonlySet<string> {
    for (const ref of this.#kept) {
      const known = ref.deref();
      if (known === names || (known !== undefined && hasSameNames(known, names))) return known;
    }
    this.#kept = [new WeakRef(names), ...this.#kept.slice(0, MAX_SETS - 1)];
    return names;
  }
}

/** As many kinds of proxies are told apart. */
const MAX_SETS = 32;

function hasSameNames(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && a.isSubsetOf(b);
}
