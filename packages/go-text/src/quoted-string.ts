/** Literals of strings as Go writes them. */

const ESCAPES: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
};
const ESCAPE = /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.?))/gs;

/** The text of a literal in double, single or back quotes, as `strconv.Unquote` reads it; undefined when it is none. */
export function unquoteGo(literal: string): string | undefined {
  const quote = literal.charAt(0);
  const body = literal.slice(1, -1);
  if (literal.length < 2 || !literal.endsWith(quote)) return undefined;
  if (quote === "`") return body.includes("`") ? undefined : body.replaceAll("\r", "");
  if (quote !== '"' && quote !== "'") return undefined;
  const text = body.includes("\n") ? undefined : withoutEscapes(body, quote);
  // Single quotes are those of one letter.
  return quote === "'" && text !== undefined && [...text].length > 1 ? undefined : text;
}

/** `\x` and octal escapes are bytes, of which several may make one letter. */
function withoutEscapes(body: string, quote: string): string | undefined {
  const parts: Buffer[] = [];
  let end = 0;
  for (const match of body.matchAll(ESCAPE)) {
    const before = body.slice(end, match.index);
    const bytes = escaped(match, quote);
    if (bytes === undefined || before.includes(quote)) return undefined;
    parts.push(Buffer.from(before), bytes);
    end = match.index + match[0].length;
  }
  const rest = body.slice(end);
  if (rest.includes(quote)) return undefined;
  return parts.length === 0 ? rest : Buffer.concat([...parts, Buffer.from(rest)]).toString();
}

function escaped([, byte, short, long, octal, letter = ""]: RegExpExecArray, quote: string): Buffer | undefined {
  if (byte !== undefined) return Buffer.from(byte, "hex");
  if (octal !== undefined) {
    const code = Number.parseInt(octal, 8);
    return code > 255 ? undefined : Buffer.from([code]);
  }
  const point = short ?? long;
  if (point !== undefined) return letterOf(Number.parseInt(point, 16));
  const text = letter === quote ? quote : ESCAPES[letter];
  return text === undefined ? undefined : Buffer.from(text);
}

/** Halves of surrogate pairs are no letters. */
function letterOf(point: number): Buffer | undefined {
  const isLetter = point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
  return isLetter ? Buffer.from(String.fromCodePoint(point)) : undefined;
}
