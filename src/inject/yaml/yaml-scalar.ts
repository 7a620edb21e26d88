/** Texts in YAML as Kubernetes' tools write them: plain where a reader takes them for a text, folded where lines get long. */
import { readDocument } from "#lib/yaml/read.ts";

/** Where a text begins, and where it goes on in further lines. */
interface Place {
  readonly column: number;
  readonly indent: number;
}

/** A line ends at the first space behind this column. */
const WIDTH = 80;

/** A key stands on one line. */
export function keyText(key: string): string {
  const nowhere = { column: Number.NEGATIVE_INFINITY, indent: 0 };
  return key.includes("\n") || key === "<<" ? doubleQuoted(key, nowhere) : textScalar(key, nowhere);
}

export function textScalar(text: string, at: Place): string {
  if (!isReadable(text)) return doubleQuoted(text, at);
  if (text.includes("\n")) return literal(text, at.indent);
  if (readsAsOther(text)) return doubleQuoted(text, at);
  return isPlain(text) ? folded([...text], at) : singleQuoted(text, at);
}

/** Letters that do not print, and spaces before a line end, need escapes. */
function isReadable(text: string): boolean {
  return !NO_PRINT.test(text) && !/ \n| $/.test(text.includes("\n") ? text : "");
}

/** Neither do those beyond the first plane, for the tools whose style this is. */
const NO_PRINT = /[^\P{C}\n]|[\u2028\u2029\uFEFF]|[^\0-\uFFFF]/u;

function literal(text: string, indent: number): string {
  const margin = " ".repeat(indent);
  const hint = /^[ \n]/.test(text) ? "2" : "";
  const chomp = !text.endsWith("\n") ? "-" : /(^|\n)\n$/.test(text) ? "+" : "";
  const lines = text.replace(/\n$/, "").split("\n");
  return `|${hint}${chomp}\n${lines.map((line) => (line === "" ? "" : margin + line)).join("\n")}`;
}

function singleQuoted(text: string, { column, indent }: Place): string {
  const pieces = [...text].map((letter) => (letter === "'" ? "''" : letter));
  return `'${folded(pieces, { column: column + 1, indent })}'`;
}

function doubleQuoted(text: string, { column, indent }: Place): string {
  return `"${folded([...text].map(escaped), { column: column + 1, indent }, "\\")}"`;
}

const ESCAPED = '\0\x07\b\t\n\v\f\r\x1b"\\';
const ESCAPES = '0abtnvfre"\\';

function escaped(letter: string): string {
  const short = ESCAPED.indexOf(letter);
  if (short >= 0) return `\\${ESCAPES[short]}`;
  if (!NO_PRINT.test(letter)) return letter;
  const code = (letter.codePointAt(0) ?? 0).toString(16).toUpperCase();
  if (code.length <= 2) return `\\x${code.padStart(2, "0")}`;
  return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
}

/**
 * Breaks long lines at single spaces, which readers put back. Before further spaces a break needs a sign that these are
 * meant; without one, lines do not end there.
 */
function folded(pieces: readonly string[], { column: first, indent }: Place, sign = ""): string {
  let text = "";
  let column = first;
  pieces.forEach((piece, i) => {
    const isInside = i > 0 && i < pieces.length - 1;
    const ends = piece === " " && pieces[i - 1] !== " " && column > WIDTH && isInside;
    const isSpaceNext = pieces[i + 1] === " ";
    if (ends && (!isSpaceNext || sign !== "")) {
      const margin = " ".repeat(indent) + (isSpaceNext ? sign : "");
      text += `\n${margin}`;
      column = margin.length;
    } else {
      text += piece;
      column += [...piece].length;
    }
  });
  return text;
}

const SEXAGESIMAL = /^[-+]?\d[\d_]*(:[0-5]?\d)+(\.[\d_]*)?$/;
const NO_NUMBER = /^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$/;

/** What a reader would take for a number, a truth value, null or a time. */
function readsAsOther(text: string): boolean {
  if (text === "" || text === "~" || SEXAGESIMAL.test(text) || NO_NUMBER.test(text) || isTime(text)) return true;
  if (!/^[\w.+-]+$/.test(text) || !/\w/.test(text)) return false;
  return typeof readDocument(text).value !== "string";
}

const DATE = /^(\d{4})-(\d\d?)-(\d\d?)/;
const CLOCK = /^(?:[Tt]\d\d?:\d\d?:\d\d?(?:[.,]\d+)?(?:Z|[-+]\d\d:\d\d)| \d\d?:\d\d?:\d\d?(?:[.,]\d+)?)?$/;

/** Of the forms that are times in YAML; a day that is in no calendar is a text. */
function isTime(text: string): boolean {
  const [date, year, month, day] = DATE.exec(text) ?? [];
  if (date === undefined || !CLOCK.test(text.slice(date.length))) return false;
  const read = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  if (read.getUTCMonth() !== Number(month) - 1 || read.getUTCDate() !== Number(day)) return false;
  const [hour = 0, minute = 0, second = 0] = text.slice(date.length).match(/\d+/g)?.map(Number) ?? [];
  return hour < 24 && minute < 60 && second < 60;
}

function isPlain(text: string): boolean {
  if (/^[#,[\]{}&*!|>'"%@`]|^[-?:]( |$)|^---|^\.\.\.|^ | $/.test(text)) return false;
  return !/:( |$)| #/.test(text);
}
