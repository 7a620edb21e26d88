/**
 * Long work as steps: a generator that yields where it may be interrupted. It stays a pure function of its inputs; who runs
 * it decides whether that happens at once or in slices of the event loop.
 */
export type Steps<Value> = Generator<undefined, Value, undefined>;

/** Of items that take a microsecond or two each, so many are a step: to interrupt the work costs something too. */
export const ITEMS_PER_STEP = 16;

/** The result of the steps, all of them at once. */
export function finished<Value>(steps: Steps<Value>): Value {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Steps that need no time. */
// biome-ignore lint/correctness/useYield: there is nothing to wait for
export function* atOnce<Value>(value: Value): Steps<Value> {
  return value;
}
