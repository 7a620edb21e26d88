/** YAML of plain data, for people to read. Small: the library that writes every kind of YAML is not worth its memory to all. */

type Plain = string | number | boolean | null | undefined | readonly Plain[] | { readonly [key: string]: Plain };

/** Words that would be read as something else than text, also by readers of YAML 1.1. */
const OTHER_THAN_TEXT = /^(|~|null|true|false|yes|no|on|off|y|n|[-+.]?\d[\d_.:xoa-ftz +-]*|[-+]?\.(inf|nan)|<<|=)$/i;
const PLAIN_TEXT = /^[A-Za-z0-9_./(][\w ./$%+()@,;=~*:-]*$/;

/** Block style with sorted keys and a line end, as Go's libraries write it; what is undefined is left out. */
export function formatYaml(value: Plain): string {
  const lines = linesOf(value);
  return `${(lines ?? [scalar(value)]).join("\n")}\n`;
}

/** Undefined for what fits behind its key. */
function linesOf(value: Plain): readonly string[] | undefined {
  if (isList(value)) return value.length === 0 ? undefined : value.flatMap(itemLines);
  if (typeof value !== "object" || value === null) return undefined;
  const entries = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.length === 0 ? undefined : entries.flatMap(([key, field]) => fieldLines(key, field));
}

function itemLines(item: Plain): readonly string[] {
  const [first = scalar(item), ...rest] = linesOf(item) ?? [];
  return [`- ${first}`, ...rest.map((line) => `  ${line}`)];
}

function fieldLines(key: string, value: Plain): readonly string[] {
  const lines = linesOf(value);
  if (lines === undefined) return [`${scalar(key)}: ${scalar(value)}`];
  // Lists stand at the indent of their key.
  return [`${scalar(key)}:`, ...(isList(value) ? lines : lines.map((line) => `  ${line}`))];
}

function scalar(value: Plain): string {
  if (isList(value)) return "[]";
  if (typeof value === "object" && value !== null) return "{}";
  if (typeof value !== "string") return String(value ?? null);
  const isPlain = PLAIN_TEXT.test(value) && !OTHER_THAN_TEXT.test(value) && !/: |:$| $/.test(value);
  return isPlain ? value : JSON.stringify(value);
}

function isList(value: Plain): value is readonly Plain[] {
  return Array.isArray(value);
}
