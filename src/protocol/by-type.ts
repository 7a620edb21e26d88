import { hasSameItems } from "#lib/collections/same-items.ts";

/**
 * Values by resource type, as a value itself: each change gives another one. A stream has a few types and changes with every
 * message, for which copies of a `Map` take longer than all else.
 */
export class ByType<Value> {
  readonly #typeUrls: readonly string[];
  readonly #values: readonly Value[];

  private constructor(typeUrls: readonly string[], values: readonly Value[]) {
    this.#typeUrls = typeUrls;
    this.#values = values;
  }

  /** Always the same one. */
  static empty<Value>(): ByType<Value> {
    return ByType.#empty;
  }

  static readonly #empty = new ByType<never>([], []);

  get size(): number {
    return this.#typeUrls.length;
  }

  get(typeUrl: string): Value | undefined {
    return this.#values[this.#typeUrls.indexOf(typeUrl)];
  }

  /** With that value for the type, which stays where it is among the others or comes last. */
  with(typeUrl: string, value: Value): ByType<Value> {
    const index = this.#typeUrls.indexOf(typeUrl);
    if (index !== -1 && this.#values[index] === value) return this;
    if (index !== -1) return new ByType(this.#typeUrls, this.#values.with(index, value));
    return new ByType([...this.#typeUrls, typeUrl], [...this.#values, value]);
  }

  /** Whether it has the very same values of the same types, in the same order. */
  isSame(other: ByType<Value>): boolean {
    return hasSameItems(this.#typeUrls, other.#typeUrls) && hasSameItems(this.#values, other.#values);
  }

  keys(): readonly string[] {
    return this.#typeUrls;
  }

  values(): readonly Value[] {
    return this.#values;
  }
}
