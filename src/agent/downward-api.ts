/** Labels and annotations as the downward API writes them into files: one `key="value"` per line, quoted as by Go's `%q`. */

export interface DownwardApiFile {
  readonly values: Readonly<Record<string, string>>;
  /** Lines that could not be read. */
  readonly problems: readonly string[];
}

export function parseDownwardApi(text: string): DownwardApiFile {
  const values: Record<string, string> = {};
  const problems: string[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    const equals = line.indexOf("=");
    if (equals < 0) continue;
    const value = unquote(line.slice(equals + 1));
    if (value === undefined) problems.push(`line ${index + 1}: the value must be in double quotes: ${line}`);
    else
      Object.defineProperty(values, line.slice(0, equals), {
        value,
        enumerable: true,
        writable: true,
        configurable: true,
      });
  }
  return { values, problems };
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};
const QUOTED = /^"((?:[^"\\]|\\.)*)"$/;
const ESCAPE = /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))/g;

function unquote(quoted: string): string | undefined {
  const body = QUOTED.exec(quoted.trimEnd())?.[1];
  return body?.replace(ESCAPE, (_, byte?: string, short?: string, long?: string, letter?: string) => {
    const code = byte ?? short ?? long;
    return code === undefined
      ? (ESCAPES[letter ?? ""] ?? letter ?? "")
      : String.fromCodePoint(Number.parseInt(code, 16));
  });
}
