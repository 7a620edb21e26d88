/** Sprig's functions on words: their case, their initials, lines of a width. */
import { textArgument as text, wholeArgument as whole } from "../functions.ts";
import type { Callable } from "../value.ts";

export const WORD_FUNCTIONS: Readonly<Record<string, Callable>> = {
  title: (value) =>
    text(value).replace(
      /(^|[^\p{L}\p{N}_'])(\p{L})/gu,
      (_, before: string, letter: string) => before + letter.toUpperCase(),
    ),
  untitle: (value) =>
    text(value).replace(/(^|\s)(\p{L})/gu, (_, before: string, letter: string) => before + letter.toLowerCase()),
  swapcase: (value) => swapped(text(value)),
  camelcase: (value) => pascalCase(text(value)),
  snakecase: (value) => lowerCase(text(value), "_"),
  kebabcase: (value) => lowerCase(text(value), "-"),
  initials: (value) =>
    text(value)
      .split(/\s+/u)
      .map((word) => [...word][0] ?? "")
      .join(""),
  plural: (one, many, count) => (whole(count) === 1 ? text(one) : text(many)),
  abbrev: (width, value) => abbreviated(text(value), whole(width)),
  abbrevboth: (offset, width, value) => abbreviatedAt(text(value), whole(offset), whole(width)),
  wrap: (width, value) => wrapped(text(value), { width: whole(width), separator: "\n", breaks: false }),
  wrapWith: (width, separator, value) =>
    wrapped(text(value), { width: whole(width), separator: text(separator) || "\n", breaks: true }),
  hello: () => "Hello!",
};

/** Lower-case letters that begin a word become titles. */
function swapped(value: string): string {
  return [...value].map((letter) => (/\p{Ll}/u.test(letter) ? letter.toUpperCase() : letter.toLowerCase())).join("");
}

const CONNECTOR = /[-_\s]/u;

/** `http_server` and `HTTP server` are HttpServer; connectors at the begin stay. */
function pascalCase(value: string): string {
  const [, lead = "", rest = ""] = /^([-_\s]*)(.*)$/su.exec(value) ?? [];
  let before = "";
  let isInCapitals = true;
  const letters = [...rest].map((letter) => {
    const begins = before === "" || CONNECTOR.test(before);
    isInCapitals = (begins || isInCapitals) && /\p{Lu}/u.test(letter);
    before = letter;
    if (begins) return letter.toUpperCase();
    // In a run of capitals that begins its word, all but the first are made small.
    return isInCapitals ? letter.toLowerCase() : letter;
  });
  const isKept = (letter: string, index: number) =>
    !CONNECTOR.test(letter) || (CONNECTOR.test(letters[index + 1] ?? "") && index + 1 < letters.length);
  return lead + letters.filter((letter, index) => isKept(letter, index) || index === letters.length - 1).join("");
}

/** Words are parted at capitals and before numbers that have small letters behind them; connectors stay. */
function lowerCase(value: string, connector: string): string {
  return value
    .replace(/([\p{Ll}\d])(\p{Lu})/gu, `$1${connector}$2`)
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, `$1${connector}$2`)
    .replace(/(\p{Lu}|\p{Ll})(\d+\p{Ll})/gu, `$1${connector}$2`)
    .replace(/[\s_-]/gu, connector)
    .toLowerCase();
}

function abbreviated(value: string, width: number): string {
  return width < 4 || [...value].length <= width ? value : `${[...value].slice(0, width - 3).join("")}...`;
}

/** Shows a part that begins about at an offset. */
function abbreviatedAt(value: string, offset: number, width: number): string {
  const { length } = value;
  if (width < 4 || (offset > 0 && width < 7) || length <= width) return value;
  const limited = Math.min(offset, length);
  const start = length - limited < width - 3 ? length - (width - 3) : limited;
  if (start <= 4) return `${value.slice(0, width - 3)}...`;
  if (start + width - 3 < length) return `...${abbreviated(value.slice(start), width - 3)}`;
  return `...${value.slice(length - (width - 3))}`;
}

interface Wrapping {
  readonly width: number;
  readonly separator: string;
  /** Whether words that are longer than a line are broken too. */
  readonly breaks: boolean;
}

/** Lines end at blanks. */
function wrapped(value: string, { width, separator, breaks }: Wrapping): string {
  const size = Math.max(1, width);
  let [result, rest] = ["", value];
  while (rest.length > size) {
    if (rest.startsWith(" ")) {
      rest = rest.slice(1);
      continue;
    }
    const blank = blankIn(rest, size, breaks);
    if (blank < 0 && !breaks) break;
    result += rest.slice(0, blank < 0 ? size : blank) + separator;
    rest = rest.slice(blank < 0 ? size : blank + 1);
  }
  return result + rest;
}

/** Where a line ends: at its last blank, else, where words stay whole, at the first one behind it. */
function blankIn(line: string, size: number, breaks: boolean): number {
  const blank = line.slice(0, size + 1).lastIndexOf(" ");
  return blank >= 0 || breaks ? blank : line.indexOf(" ", size);
}
