/** Bounds the values that a template makes, printed or not: two lines can double a value until the memory is full. */
import { CallError } from "./template-error.ts";
import { entriesOf, isList, isMap, type Value } from "./value.ts";

export class ValueBudget {
  /** Letters and items. */
  readonly #limit: number;
  #made = 0;
  /** Letters and items in a list or a map, with all that is inside. A list that holds itself twice weighs double. */
  readonly #weights = new WeakMap<object, number>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The value that a function gave. Throws when the template has made more than it may. */
  counted(value: Value): Value {
    const items = itemsOf(value);
    this.#made += typeof value === "string" ? value.length : items.length;
    const weight = items.reduce<number>((sum, item) => sum + this.#weightOf(item), 1);
    if (this.#made > this.#limit || weight > this.#limit)
      throw new CallError(`the template makes values of more than ${this.#limit} letters and items`);
    if (typeof value === "object" && value !== null) this.#weights.set(value, weight);
    return value;
  }

  /** What the template did not make counts as one: its size is that of the input. */
  #weightOf(value: Value): number {
    if (typeof value === "string") return value.length;
    return typeof value === "object" && value !== null ? (this.#weights.get(value) ?? 1) : 1;
  }
}

function itemsOf(value: Value): readonly Value[] {
  if (isList(value)) return value;
  return isMap(value) ? (entriesOf(value) ?? []).map(([, item]) => item) : [];
}
