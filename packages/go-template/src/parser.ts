/** Reads a template into nodes. */
import { unquoteGo } from "@mizzen/go-text/quoted-string";
import { characterOf, numberOf } from "./constants.ts";
import { type Token, type TokenKind, tokensOf } from "./lexer.ts";
import type { BranchNode, CommandNode, ListNode, PipeNode, StatementNode, WordNode } from "./nodes.ts";
import { TemplateError } from "./template-error.ts";
import type { Value } from "./value.ts";

/** A template and those that it defines, by name. */
export type ParsedTemplates = ReadonlyMap<string, ListNode>;

/** `isFunction` says which names may be called. Throws a `TemplateError` that names the line. */
export function parseTemplate(name: string, source: string, isFunction: (name: string) => boolean): ParsedTemplates {
  const parser = new Parser(name, tokensOf(name, source), isFunction);
  return parser.parse();
}

/** No template that people write is nested so deeply. */
const DEEPEST = 200;
const KEYWORDS: ReadonlySet<string> = new Set(["else", "end"]);

class Parser {
  readonly #name: string;
  readonly #tokens: readonly Token[];
  readonly #isFunction: (name: string) => boolean;
  readonly #templates = new Map<string, ListNode>();
  #at = 0;
  #variables: string[] = ["$"];
  #ranges = 0;
  #depth = 0;

  constructor(name: string, tokens: readonly Token[], isFunction: (name: string) => boolean) {
    this.#name = name;
    this.#tokens = tokens;
    this.#isFunction = isFunction;
  }

  parse(): ParsedTemplates {
    const { list, end } = this.#list();
    if (end !== "") this.#fail(`unexpected {{${end}}}`);
    // A definition of the same name inside it comes first, as an empty text of it does to Go.
    if (!this.#templates.has(this.#name) || list.some((node) => node.kind !== "text" || node.text.trim() !== ""))
      this.#templates.set(this.#name, list);
    return this.#templates;
  }

  /** Statements up to `{{end}}` or `{{else ...}}`, which is left to be read, or to the end of the source. */
  #list(): { readonly list: ListNode; readonly end: "" | "end" | "else" } {
    if (++this.#depth > DEEPEST) this.#fail("the template is nested too deeply");
    const list: StatementNode[] = [];
    for (;;) {
      const token = this.#next();
      if (token.kind === "end") {
        this.#depth--;
        return { list, end: "" };
      }
      if (token.kind === "text") {
        list.push({ kind: "text", text: token.text, line: token.line });
        continue;
      }
      const { kind, text } = this.#peekWord();
      if (kind === "identifier" && KEYWORDS.has(text)) {
        this.#word();
        this.#depth--;
        return { list, end: text === "end" ? "end" : "else" };
      }
      const node = this.#statement(token.line);
      if (node !== undefined) list.push(node);
    }
  }

  #statement(line: number): StatementNode | undefined {
    const { kind, text } = this.#peekWord();
    switch (kind === "identifier" ? text : "") {
      case "if":
      case "with":
      case "range":
        this.#word();
        return this.#branch(text as BranchNode["kind"], line);
      case "define":
        this.#word();
        this.#define();
        return undefined;
      case "block":
        this.#word();
        return this.#block(line);
      case "template":
        this.#word();
        return this.#template(line);
      case "break":
      case "continue":
        this.#word();
        if (this.#ranges === 0) this.#fail(`{{${text}}} outside {{range}}`);
        this.#close(text);
        return { kind: text as "break" | "continue", line };
      default:
        return { kind: "action", pipe: this.#pipe("command", "close"), line };
    }
  }

  #branch(kind: BranchNode["kind"], line: number): BranchNode {
    const known = this.#variables.length;
    const pipe = this.#pipe(kind, "close");
    if (kind === "range") this.#ranges++;
    const { list: body, end } = this.#list();
    if (kind === "range") this.#ranges--;
    const otherwise = this.#otherwise(kind, end);
    this.#variables.length = known;
    return { kind, pipe, body, otherwise, line };
  }

  #otherwise(kind: BranchNode["kind"], end: "" | "end" | "else"): ListNode | undefined {
    if (end === "") this.#fail("unexpected EOF");
    if (end === "end") {
      this.#close("end");
      return undefined;
    }
    const { kind: word, text, line } = this.#peekWord();
    // `{{else if}}` is an if inside the else, and its end is the end of both.
    if (word === "identifier" && text === kind && kind !== "range") {
      this.#word();
      return [this.#branch(kind, line)];
    }
    this.#close("else");
    const { list, end: last } = this.#list();
    if (last !== "end") this.#fail(last === "" ? "unexpected EOF" : "expected end; found {{else}}");
    this.#close("end");
    return list;
  }

  #define(): void {
    const name = this.#templateName("define clause");
    this.#close("define clause");
    this.#defineBody(name, "define clause");
  }

  #block(line: number): StatementNode {
    const name = this.#templateName("block clause");
    const pipe = this.#pipe("block clause", "close");
    this.#defineBody(name, "block clause");
    return { kind: "template", name, pipe, line };
  }

  #defineBody(name: string, where: string): void {
    const [variables, ranges] = [this.#variables, this.#ranges];
    this.#variables = ["$"];
    this.#ranges = 0;
    const { list, end } = this.#list();
    if (end !== "end") this.#fail(`unexpected ${end === "" ? "EOF" : "{{else}}"} in ${where}`);
    this.#close("end");
    this.#variables = variables;
    this.#ranges = ranges;
    this.#templates.set(name, list);
  }

  #template(line: number): StatementNode {
    const name = this.#templateName("template clause");
    if (this.#peekWord().kind === "close") {
      this.#word();
      return { kind: "template", name, pipe: undefined, line };
    }
    return { kind: "template", name, pipe: this.#pipe("template clause", "close"), line };
  }

  #templateName(where: string): string {
    const token = this.#word();
    const name = token.kind === "string" ? unquoteGo(token.text) : undefined;
    return name ?? this.#fail(`unexpected ${shown(token)} in ${where}`);
  }

  #pipe(where: string, until: "close" | ")"): PipeNode {
    if (++this.#depth > DEEPEST) this.#fail("the template is nested too deeply");
    const { line } = this.#peekWord();
    const { declares, assigns } = this.#declaration(where);
    const commands: CommandNode[] = [];
    for (;;) {
      const token = this.#peekWord();
      if (token.kind === until || (token.kind === "operator" && token.text === until)) {
        this.#word();
        this.#checkPipe(commands, where);
        this.#depth--;
        return { kind: "pipe", declares, assigns, commands, line };
      }
      commands.push(this.#command());
    }
  }

  #checkPipe(commands: readonly CommandNode[], where: string): void {
    if (commands.length === 0) this.#fail(`missing value for ${where}`);
    for (const [index, { words }] of commands.entries()) {
      const [first] = words;
      const callable = first !== undefined && first.kind !== "constant" && first.kind !== "dot" && first.kind !== "nil";
      if (index > 0 && !callable) this.#fail(`non executable command in pipeline stage ${index + 1}`);
    }
  }

  /** `$x :=`, `$x =`, and in a range `$i, $x :=`. */
  #declaration(where: string): { readonly declares: readonly string[]; readonly assigns: boolean } {
    const start = this.#at;
    const names: string[] = [];
    while (this.#peekWord().kind === "variable" && names.length < 2) {
      names.push(this.#word().text);
      const { kind, text } = this.#peekWord();
      if (kind === "operator" && (text === ":=" || text === "=")) {
        this.#word();
        if (names.length > 1 && where !== "range") this.#fail(`too many declarations in ${where}`);
        if (text === "=") for (const name of names) this.#checkVariable(name);
        else this.#variables.push(...names);
        return { declares: names, assigns: text === "=" };
      }
      if (kind !== "operator" || text !== ",") break;
      this.#word();
    }
    this.#at = start;
    return { declares: [], assigns: false };
  }

  #command(): CommandNode {
    const { line } = this.#peekWord();
    const words: WordNode[] = [];
    for (;;) {
      const word = this.#operand();
      if (word !== undefined) words.push(word);
      const token = this.#peek();
      if (token.kind === "space") {
        this.#at++;
        const next = this.#peek();
        if (next.kind !== "close" && !(next.kind === "operator" && (next.text === "|" || next.text === ")"))) continue;
      }
      const next = this.#peek();
      if (next.kind === "operator" && next.text === "|") {
        this.#at++;
        if (words.length === 0) this.#fail("empty command");
        break;
      }
      if (next.kind === "close" || (next.kind === "operator" && next.text === ")")) break;
      this.#fail(`unexpected ${shown(next)} in operand`);
    }
    if (words.length === 0) this.#fail("empty command");
    return { words, line };
  }

  /** A term and the fields behind it. */
  #operand(): WordNode | undefined {
    const term = this.#term();
    if (term === undefined || this.#peek().kind !== "field") return term;
    const names: string[] = [];
    while (this.#peek().kind === "field") names.push((this.#tokens[this.#at++]?.text ?? "").slice(1));
    if (term.kind === "field" || term.kind === "variable") return { ...term, names: [...term.names, ...names] };
    if (term.kind === "constant" || term.kind === "nil")
      return this.#fail(`unexpected . after term ${JSON.stringify(term.kind === "nil" ? "nil" : term.source)}`);
    if (term.kind === "dot") return { kind: "field", names, line: term.line };
    return { kind: "chain", node: term, names, line: term.line };
  }

  #term(): WordNode | undefined {
    const token = this.#peekWord();
    const { kind, text, line } = token;
    const constant = (value: Value | undefined, problem: string): WordNode => {
      if (value === undefined) this.#fail(problem);
      this.#word();
      return { kind: "constant", value, source: text, line };
    };
    switch (kind) {
      case "identifier":
        return this.#identifier(this.#word());
      case "field":
        this.#word();
        return { kind: "field", names: [text.slice(1)], line };
      case "variable":
        this.#word();
        this.#checkVariable(text);
        return { kind: "variable", name: text, names: [], line };
      case "string":
        return constant(unquoteGo(text), "invalid syntax");
      case "character":
        return constant(characterOf(text), `malformed character constant: ${text}`);
      case "number":
        return constant(numberOf(text), `illegal number syntax: ${JSON.stringify(text)}`);
      case "operator":
        return this.#operatorTerm(token);
      default:
        return undefined;
    }
  }

  #operatorTerm({ text, line }: Token): WordNode | undefined {
    if (text === ".") {
      this.#word();
      return { kind: "dot", line };
    }
    if (text !== "(") return undefined;
    this.#word();
    return this.#pipe("parenthesized pipeline", ")");
  }

  #identifier({ text, line }: Token): WordNode {
    if (text === "nil") return { kind: "nil", line };
    if (text === "true" || text === "false") return { kind: "constant", value: text === "true", source: text, line };
    if (!this.#isFunction(text)) this.#fail(`function "${text}" not defined`);
    return { kind: "function", name: text, line };
  }

  #checkVariable(name: string): void {
    if (!this.#variables.includes(name)) this.#fail(`undefined variable "${name}"`);
  }

  #close(where: string): void {
    const token = this.#word();
    if (token.kind !== "close") this.#fail(`unexpected ${shown(token)} in ${where}`);
  }

  #next(): Token {
    return this.#tokens[this.#at++] ?? this.#last();
  }

  #peek(): Token {
    return this.#tokens[this.#at] ?? this.#last();
  }

  /** The next token that is no space. */
  #peekWord(): Token {
    while (this.#peek().kind === ("space" satisfies TokenKind)) this.#at++;
    return this.#peek();
  }

  #word(): Token {
    const token = this.#peekWord();
    this.#at++;
    return token;
  }

  #last(): Token {
    return this.#tokens.at(-1) ?? { kind: "end", text: "", line: 1 };
  }

  #fail(message: string): never {
    const { line } = this.#tokens[Math.max(0, this.#at - 1)] ?? this.#last();
    throw new TemplateError(`template: ${this.#name}:${line}: ${message}`, line);
  }
}

function shown({ kind, text }: Token): string {
  return kind === "end" ? "EOF" : JSON.stringify(text);
}
