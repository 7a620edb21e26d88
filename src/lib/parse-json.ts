/** Beyond it, writing a value out again ends with an exhausted stack. */
const MAX_DEPTH = 1_000;

/** The value of JSON that somebody else wrote. Throws a SyntaxError for text that is none, or nested beyond reason. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!isWithin(value, MAX_DEPTH)) throw new SyntaxError(`it is nested deeper than ${MAX_DEPTH}`);
  return value;
}

function isWithin(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((item) => isWithin(item, depth - 1));
}
