/** Whether a value is an object with named fields: what JSON and YAML write in braces. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
