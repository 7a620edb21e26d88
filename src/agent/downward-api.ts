/** Labels and annotations as the downward API writes them into files: one `key="value"` per line, quoted as by Go's `%q`. */

export interface DownwardApiFile {
  /** Empty when there is a problem: half of a pod's annotations would mean something else than all of them. */
  readonly values: Readonly<Record<string, string>>;
  /** The first line that could not be read. */
  readonly problem: string | undefined;
}

export function parseDownwardApi(text: string): DownwardApiFile {
  const entries: [key: string, value: string][] = [];
  for (const [index, line] of text.split("\n").entries()) {
    const equals = line.indexOf("=");
    if (equals < 0) continue;
    const value = unquote(line.slice(equals + 1));
    if (value === undefined) {
      return { values: {}, problem: `line ${index + 1}: the value must be quoted as by Go: ${line}` };
    }
    entries.push([line.slice(0, equals), value]);
  }
  return { values: Object.fromEntries(entries), problem: undefined };
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  '"': '"',
};
const RAW = /^`([^`]*)`$/;
const QUOTED =
  /^"((?:[^"\\]|\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U00[01][0-9a-fA-F]{5}|[0-3][0-7]{2}|[abfnrtv\\"]))*)"$/;
const ESCAPE = /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))/g;

function unquote(quoted: string): string | undefined {
  const body = QUOTED.exec(quoted)?.[1];
  return body === undefined ? RAW.exec(quoted)?.[1] : withoutEscapes(body);
}

/** `\x` and octal escapes are bytes, of which several may make one letter. */
function withoutEscapes(body: string): string {
  if (!body.includes("\\")) return body;
  const parts: Buffer[] = [];
  let end = 0;
  for (const { index, 0: whole, 1: byte, 2: short, 3: long, 4: octal, 5: letter } of body.matchAll(ESCAPE)) {
    parts.push(Buffer.from(body.slice(end, index)));
    const point = short ?? long;
    if (byte !== undefined) parts.push(Buffer.from(byte, "hex"));
    else if (octal !== undefined) parts.push(Buffer.from([Number.parseInt(octal, 8)]));
    else parts.push(Buffer.from(point === undefined ? (ESCAPES[letter ?? ""] ?? "") : letterOf(point)));
    end = index + whole.length;
  }
  return Buffer.concat([...parts, Buffer.from(body.slice(end))]).toString();
}

function letterOf(hex: string): string {
  const point = Number.parseInt(hex, 16);
  return point > 0x10ffff ? "\uFFFD" : String.fromCodePoint(point);
}
