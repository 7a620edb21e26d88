/**
 * The fields of JSON that stands where Go has a struct, by name in lower case: Go reads names in any mix of cases, and
 * null as a struct with nothing set. Undefined for what is no object.
 */
export function goFields(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== "object" || Array.isArray(value)) return undefined;
  return Object.fromEntries(Object.entries(value ?? {}).map(([name, field]) => [name.toLowerCase(), field]));
}
