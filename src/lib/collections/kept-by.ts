/** What was made for an owner under a key, as long as the owner lives; made when it is asked for first. */
export function keptBy<Owner extends object, Value extends NonNullable<unknown>>(
  known: WeakMap<Owner, Map<string, Value>>,
  owner: Owner,
  key: string,
  make: () => Value,
): Value {
  const values = known.get(owner) ?? new Map<string, Value>();
  if (values.size === 0) known.set(owner, values);
  const same = values.get(key);
  if (same !== undefined) return same;
  const value = make();
  values.set(key, value);
  return value;
}
