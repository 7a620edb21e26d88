/** Splits a template into text and the tokens inside its `{{ }}`. */

import { withoutLeading, withoutTrailing } from "@mizzen/go-text/trim";
import { TemplateError } from "./template-error.ts";

export type TokenKind =
  | "text"
  | "open"
  | "close"
  | "space"
  | "identifier"
  | "field"
  | "variable"
  | "string"
  | "number"
  | "character"
  | "operator"
  | "end";

export interface Token {
  readonly kind: TokenKind;
  /** As it stands in the source; of text, what is left after trimming. */
  readonly text: string;
  readonly line: number;
}

/** White space to Go's trim markers. */
const SPACES = " \t\r\n";
const TOKENS: readonly (readonly [kind: TokenKind, pattern: RegExp])[] = [
  ["space", /[ \t\r\n]+/y],
  ["string", /"(?:[^"\\\n]|\\.)*"|`[^`]*`/y],
  ["character", /'(?:[^'\\\n]|\\.)+'/y],
  [
    "number",
    /[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?)(?![\p{L}\w])/uy,
  ],
  ["field", /\.[\p{L}_][\p{L}\p{N}_]*/uy],
  ["variable", /\$[\p{L}\p{N}_]*/uy],
  ["identifier", /[\p{L}_][\p{L}\p{N}_]*/uy],
  ["operator", /:=|[=|(),.]/y],
];

/** The tokens of a template; comments leave nothing. */
export function tokensOf(name: string, source: string): Token[] {
  const tokens: Token[] = [];
  const fail = (message: string, at: number): never => {
    const line = lineAt(source, at);
    throw new TemplateError(`template: ${name}:${line}: ${message}`, line);
  };
  let at = 0;
  let trimStart = false;
  while (at < source.length) {
    const open = source.indexOf("{{", at);
    const end = open < 0 ? source.length : open;
    const trimEnd = open >= 0 && isTrimOpen(source, open);
    pushText(tokens, trimmed(source.slice(at, end), trimStart, trimEnd), lineAt(source, at));
    if (open < 0) break;
    const start = open + (trimEnd ? 3 : 2);
    const comment = /[ \t\r\n]*\/\*/y;
    comment.lastIndex = start;
    const action = comment.test(source)
      ? afterComment(source, comment.lastIndex, fail)
      : lexAction({ source, start, tokens, fail });
    at = action.end;
    trimStart = action.trims;
  }
  tokens.push({ kind: "end", text: "", line: lineAt(source, source.length) });
  return tokens;
}

interface ActionEnd {
  /** Behind the `}}`. */
  readonly end: number;
  /** It ends with a trim marker. */
  readonly trims: boolean;
}

interface ActionInput {
  readonly source: string;
  readonly start: number;
  readonly tokens: Token[];
  readonly fail: (message: string, at: number) => never;
}

function lexAction({ source, start, tokens, fail }: ActionInput): ActionEnd {
  const opening = lineAt(source, start);
  let line = opening;
  const push = (kind: TokenKind, text: string) => tokens.push({ kind, text, line });
  push("open", "{{");
  for (let at = start; ; ) {
    const trims = /[ \t\r\n]-}}/y;
    trims.lastIndex = at;
    if (trims.test(source)) {
      push("close", "}}");
      return { end: at + 4, trims: true };
    }
    if (source.startsWith("}}", at)) {
      push("close", "}}");
      return { end: at + 2, trims: false };
    }
    if (at >= source.length) return fail("unclosed action", at);
    const [kind, text] = tokenAt(source, at) ?? fail(problemAt(source, at), at);
    push(kind, text);
    line += newLines(text);
    at += text.length;
  }
}

const UNTERMINATED: Readonly<Record<string, string>> = {
  '"': "unterminated quoted string",
  "'": "unterminated character constant",
  "`": "unterminated raw quoted string",
};

function problemAt(source: string, at: number): string {
  const letter = source.charAt(at);
  return UNTERMINATED[letter] ?? `unexpected ${JSON.stringify(letter)} in command`;
}

function tokenAt(source: string, at: number): readonly [TokenKind, string] | undefined {
  for (const [kind, pattern] of TOKENS) {
    pattern.lastIndex = at;
    const match = pattern.exec(source);
    if (match === null) continue;
    // A space before a trim marker belongs to the marker.
    if (kind === "space" && source.startsWith("-}}", at + match[0].length) && match[0].length > 1)
      return [kind, match[0].slice(0, -1)];
    return [kind, match[0]];
  }
  return undefined;
}

function afterComment(source: string, start: number, fail: ActionInput["fail"]): ActionEnd {
  const end = source.indexOf("*/", start);
  if (end < 0) return fail("unclosed comment", start);
  const close = /[ \t\r\n]-}}|}}/y;
  close.lastIndex = end + 2;
  const match = close.exec(source);
  if (match === null) return fail("comment ends before closing delimiter", end);
  return { end: close.lastIndex, trims: match[0].length > 2 };
}

/** `{{- ` with a space: `{{-3}}` is a number. */
function isTrimOpen(source: string, open: number): boolean {
  return source[open + 2] === "-" && SPACES.includes(source[open + 3] ?? "x");
}

function trimmed(text: string, start: boolean, end: boolean): string {
  const left = start ? withoutLeading(text, SPACES) : text;
  return end ? withoutTrailing(left, SPACES) : left;
}

function pushText(tokens: Token[], text: string, line: number): void {
  if (text !== "") tokens.push({ kind: "text", text, line });
}

function newLines(text: string): number {
  return text.split("\n").length - 1;
}

function lineAt(source: string, at: number): number {
  let line = 1;
  for (let next = source.indexOf("\n"); next >= 0 && next < at; next = source.indexOf("\n", next + 1)) line++;
  return line;
}
