/**
 * A resource still to be built, as a pure recipe. Planning a view yields recipes; the xDS server turns them into bytes and
 * keeps the bytes as long as the recipe's input stays the same.
 *
 * What a builder receives is its whole cache key: two inputs are equal when their fields are identical (`Object.is`),
 * arrays among them element by element. So inputs hold snapshot objects, primitive values and flat arrays of these, and
 * a builder looks at nothing else.
 */
export interface Recipe<Input extends object = object> {
  readonly name: string;
  readonly input: Input;
  /** Canonical bytes of the message, without the parts. Must be the same function object for every recipe of its kind. */
  readonly build: (input: Input) => Uint8Array;
  /**
   * Repeated sub-messages (virtual hosts of a route, filter chains of a listener) that are built, cached and encoded on
   * their own and appended as field `field`: a message is the concatenation of its fields.
   */
  readonly parts?: { readonly field: number; readonly recipes: readonly Recipe[] };
  /** The same resource without what users patched of it: what a proxy gets that rejects it. */
  readonly unpatched?: Recipe;
  /** `kind/namespace/name` of configuration it comes from, beyond the objects in its input; for messages to people alone. */
  readonly origins?: readonly string[];
}

/** A recipe whose builder's type is forgotten, for lists of several kinds. */
export function recipe<Input extends object>(value: Recipe<Input>): Recipe {
  return value as unknown as Recipe;
}
