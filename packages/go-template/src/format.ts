/** Values as text, as Go's fmt package writes them. */

import { withoutTrailing } from "@mizzen/go-text/trim";
import { entriesOf, isList, isMap, Struct, typeName, type Value } from "./value.ts";

/** `Sprint`: a space between operands of which neither is a string. */
export function sprint(values: readonly Value[]): string {
  return values
    .map((value, index) => {
      const spaced = index > 0 && typeof value !== "string" && typeof values[index - 1] !== "string";
      return `${spaced ? " " : ""}${plain(value)}`;
    })
    .join("");
}

/** `Sprintln`: a space between all operands, and a line end. */
export function sprintln(values: readonly Value[]): string {
  return `${values.map(plain).join(" ")}\n`;
}

/** `%v`. */
export function plain(value: Value): string {
  return formatted(value, { verb: "v", flags: "", width: undefined, precision: undefined });
}

interface Directive {
  readonly verb: string;
  readonly flags: string;
  readonly width: number | undefined;
  readonly precision: number | undefined;
}

const DIRECTIVE = /%([+\-# 0]*)(?:\[(\d+)\])?(\*|\d+)?(?:\.(\*|\d*))?(?:\[(\d+)\])?(.)?/gsu;

/** Go's limit for widths and precisions. A larger one could fill the memory. */
const MAX_SIZE = 1_000_000;
/** JavaScript's limit for the digits of floating-point numbers. */
const MAX_FLOAT_DIGITS = 100;

/** `Sprintf`. Wrong directives show themselves in the text, as in Go. */
export function sprintf(format: string, values: readonly Value[]): string {
  let next = 0;
  let reordered = false;
  const number = (text: string | undefined): number | undefined => {
    if (text !== "*") return text === undefined ? undefined : Number(text);
    const value = values[next++];
    return typeof value === "bigint" ? Number(value) : undefined;
  };
  const text = format.replace(DIRECTIVE, (_: string, ...groups: (string | undefined)[]) => {
    const [flags = "", first, widthText, precisionText, second, verb] = groups;
    const index = first ?? second;
    if (index !== undefined) reordered = true;
    if (verb === undefined) return "%!(NOVERB)";
    if (verb === "%") return "%";
    const width = number(widthText);
    const precision = number(precisionText === "" ? "0" : precisionText);
    if (Math.abs(width ?? 0) > MAX_SIZE) return "%!(BADWIDTH)";
    if (Math.abs(precision ?? 0) > MAX_SIZE) return "%!(BADPREC)";
    if (index !== undefined) next = Number(index) - 1;
    if (next >= values.length || next < 0) return index === undefined ? `%!${verb}(MISSING)` : `%!${verb}(BADINDEX)`;
    return formatted(values[next++], {
      verb,
      flags: width !== undefined && width < 0 ? `${flags}-` : flags,
      width: width === undefined ? undefined : Math.abs(width),
      precision,
    });
  });
  const extra = reordered ? [] : values.slice(next);
  if (extra.length === 0) return text;
  return `${text}%!(EXTRA ${extra.map((value) => `${typeName(value)}${value === null || value === undefined ? "" : `=${plain(value)}`}`).join(", ")})`;
}

function formatted(value: Value, directive: Directive): string {
  const { verb, flags } = directive;
  if (verb === "T") return padded(typeName(value), directive);
  if (value === null || value === undefined) return verb === "v" ? padded("<nil>", directive) : `%!${verb}(<nil>)`;
  if (isList(value)) return `[${value.map((item) => formatted(item, directive)).join(" ")}]`;
  if (value instanceof Struct && value.traits.isNil) return padded("<nil>", directive);
  if (value instanceof Struct && value.traits.text !== undefined) return formatted(value.traits.text, directive);
  if (value instanceof Struct) {
    const fields = entriesOf(value) ?? [];
    const named = flags.includes("+")
      ? ([key, item]: [string, Value]) => `${key}:${formatted(item, directive)}`
      : ([, item]: [string, Value]) => formatted(item, directive);
    return `{${fields.map(named).join(" ")}}`;
  }
  if (isMap(value)) {
    const items = (entriesOf(value) ?? []).map(
      ([key, item]) => `${formatted(key, directive)}:${formatted(item, directive)}`,
    );
    return `map[${items.join(" ")}]`;
  }
  return scalar(value, directive) ?? bad(value, verb);
}

function bad(value: Value, verb: string): string {
  return `%!${verb}(${typeName(value)}=${plain(value)})`;
}

function scalar(value: Value, given: Directive): string | undefined {
  const { verb } = given;
  // Of the usual form a plus asks for the names of fields, not for signs.
  const directive = verb === "v" ? { ...given, flags: given.flags.replaceAll("+", "") } : given;
  if (typeof value === "string") return textForm(value, directive);
  if (typeof value === "boolean") return verb === "t" || verb === "v" ? padded(String(value), directive) : undefined;
  if (typeof value === "bigint") return wholeForm(value, directive);
  if (typeof value === "number") return floatForm(value, directive);
  return typeof value === "function" && verb === "v" ? "0x0" : undefined;
}

function textForm(value: string, directive: Directive): string | undefined {
  const { verb, flags, precision } = directive;
  const cut = precision === undefined ? value : [...value].slice(0, precision).join("");
  switch (verb) {
    case "s":
      return padded(cut, directive);
    case "v":
      return padded(flags.includes("#") ? quoted(cut) : cut, directive);
    case "q":
      return padded(flags.includes("#") && isRawSafe(cut) ? `\`${cut}\`` : quoted(cut, flags.includes("+")), directive);
    case "x":
      return padded(Buffer.from(cut).toString("hex"), directive);
    case "X":
      return padded(Buffer.from(cut).toString("hex").toUpperCase(), directive);
    default:
      return undefined;
  }
}

/** Can stand between back quotes. */
function isRawSafe(text: string): boolean {
  return [...text].every((letter) => letter !== "`" && (letter === "\t" || isPrintable(letter)));
}

const RADIX: Readonly<Record<string, readonly [radix: number, prefix: string]>> = {
  d: [10, ""],
  v: [10, ""],
  b: [2, "0b"],
  o: [8, "0"],
  O: [8, ""],
  x: [16, "0x"],
  X: [16, "0X"],
};

function wholeForm(value: bigint, directive: Directive): string | undefined {
  const { verb, flags, precision, width } = directive;
  if (verb === "c") return padded(letterOf(value), directive);
  if (verb === "q") return padded(`'${letterOf(value)}'`, directive);
  if (verb === "U") return padded(`U+${value.toString(16).toUpperCase().padStart(4, "0")}`, directive);
  const form = RADIX[verb];
  if (form === undefined) return undefined;
  const [radix, prefix] = form;
  const magnitude = value < 0n ? -value : value;
  const sign = signOf(value < 0n, flags);
  const shown = verb === "X" ? magnitude.toString(radix).toUpperCase() : magnitude.toString(radix);
  const lead = verb === "O" ? "0o" : flags.includes("#") ? prefix : "";
  const zeros =
    flags.includes("0") && !flags.includes("-") && precision === undefined
      ? (width ?? 0) - sign.length - lead.length
      : (precision ?? 0);
  return padded(`${sign}${lead}${shown.padStart(zeros, "0")}`, directive);
}

function letterOf(code: bigint): string {
  return code < 0n || code > 0x10ffffn ? "\uFFFD" : String.fromCodePoint(Number(code));
}

function floatForm(value: number, directive: Directive): string | undefined {
  const { verb, flags, precision, width } = directive;
  if (!"vgGeEfF".includes(verb)) return undefined;
  const magnitude = Math.abs(value);
  const negative = value < 0 || Object.is(value, -0);
  const sign = Number.isNaN(value) ? "" : signOf(negative, flags);
  const shown = Number.isFinite(value) ? digits(magnitude, verb, precision) : Number.isNaN(value) ? "NaN" : "Inf";
  const signed = Number.isFinite(value) || Number.isNaN(value) ? sign : sign === "" ? "+" : sign;
  const zeros =
    flags.includes("0") && !flags.includes("-") && Number.isFinite(value) ? (width ?? 0) - signed.length : 0;
  return padded(`${signed}${shown.padStart(zeros, "0")}`, directive);
}

function digits(magnitude: number, verb: string, given: number | undefined): string {
  const precision = given === undefined ? undefined : Math.min(Math.max(given, 0), MAX_FLOAT_DIGITS);
  if (verb === "f" || verb === "F") return magnitude.toFixed(precision ?? 6);
  if (verb === "e" || verb === "E") {
    const text = withExponent(magnitude.toExponential(precision ?? 6));
    return verb === "E" ? text.toUpperCase() : text;
  }
  const text = shortest(magnitude, precision);
  return verb === "G" ? text.toUpperCase() : text;
}

/** `%g`: the shortest digits that give the same number, with an exponent where it is large or small. */
function shortest(magnitude: number, precision: number | undefined): string {
  if (magnitude === 0) return "0";
  const wanted = precision === 0 ? 1 : precision;
  const text = wanted === undefined ? magnitude.toExponential() : magnitude.toExponential(Math.min(wanted - 1, 100));
  const [mantissa = "", exponentText = "0"] = text.split("e");
  const exponent = Number(exponentText);
  const significant = mantissa.includes(".") ? withoutTrailing(withoutTrailing(mantissa, "0"), ".") : mantissa;
  const limit = wanted ?? 6;
  if (exponent < -4 || exponent >= limit) return withExponent(`${significant}e${exponentText}`);
  return plainDecimal(significant.replace(".", ""), exponent);
}

function plainDecimal(significant: string, exponent: number): string {
  if (exponent < 0) return `0.${"0".repeat(-exponent - 1)}${significant}`;
  if (significant.length <= exponent + 1) return significant.padEnd(exponent + 1, "0");
  return `${significant.slice(0, exponent + 1)}.${significant.slice(exponent + 1)}`;
}

function withExponent(text: string): string {
  return text.replace(/e([+-]?)(\d)$/, (_, sign: string, digit: string) => `e${sign || "+"}0${digit}`);
}

function signOf(negative: boolean, flags: string): string {
  if (negative) return "-";
  return flags.includes("+") ? "+" : flags.includes(" ") ? " " : "";
}

function padded(text: string, { flags, width = 0 }: Directive): string {
  if (width === 0) return text;
  const missing = width - [...text].length;
  if (missing <= 0) return text;
  return flags.includes("-") ? text + " ".repeat(missing) : " ".repeat(missing) + text;
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
  '"': '\\"',
};

/** `%q`: a string as Go's source has it, on demand in ASCII alone. */
export function quoted(text: string, inAscii = false): string {
  const isShown = (letter: string) => isPrintable(letter) && !(inAscii && letter > "~");
  const body = [...text].map((letter) => SHORT_ESCAPES[letter] ?? (isShown(letter) ? letter : escapedLetter(letter)));
  return `"${body.join("")}"`;
}

function escapedLetter(letter: string): string {
  const code = letter.codePointAt(0) ?? 0;
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** Letters, marks, numbers, punctuation, symbols, and of the spaces only the usual one. */
export function isPrintable(letter: string): boolean {
  return letter === " " || /[\p{L}\p{M}\p{N}\p{P}\p{S}]/u.test(letter);
}
