/** Executes a parsed template: nodes and a value to text. */

import { sprint } from "./format.ts";
import type { FunctionTable } from "./functions.ts";
import type { BranchNode, CommandNode, ListNode, PipeNode, StatementNode, TemplateNode, WordNode } from "./nodes.ts";
import { shownWord } from "./nodes.ts";
import type { ParsedTemplates } from "./parser.ts";
import { CallError, TemplateError } from "./template-error.ts";
import { entriesOf, hasKey, isList, isMap, isTrue, itemOf, Struct, typeName, type Value } from "./value.ts";
import { ValueBudget } from "./value-budget.ts";

/** What a template may use at most. A template is user input: without limits one line of it can stop a program. */
export interface TemplateLimits {
  /** Templates inside templates. */
  readonly depth: number;
  /** Letters of output. */
  readonly output: number;
  /** Nodes that are executed. */
  readonly steps: number;
}

export interface ExecuteInput {
  readonly templates: ParsedTemplates;
  readonly functions: FunctionTable;
  readonly limits: TemplateLimits;
}

/** The text that a template gives for a value. Throws a `TemplateError` that names template and line. */
export function execute(input: ExecuteInput, name: string, data: Value): string {
  const run = new Execution(input);
  run.template(name, data ?? undefined, 1);
  return run.output.join("");
}

interface Variable {
  readonly name: string;
  value: Value;
}

/** What holds while one template is executed. */
interface Frame {
  readonly name: string;
  readonly depth: number;
  readonly variables: Variable[];
}

/** How a list of statements ended. */
type Ending = "done" | "break" | "continue";

class Execution {
  readonly output: string[] = [];
  readonly #input: ExecuteInput;
  readonly #values: ValueBudget;
  #steps = 0;
  #written = 0;

  constructor(input: ExecuteInput) {
    this.#input = input;
    this.#values = new ValueBudget(2 * input.limits.output);
  }

  template(name: string, dot: Value, depth: number): void {
    const body = this.#input.templates.get(name) ?? [];
    this.#list(body, dot, { name, depth, variables: [{ name: "$", value: dot }] });
  }

  #list(list: ListNode, dot: Value, frame: Frame): Ending {
    for (const node of list) {
      const ending = this.#statement(node, dot, frame);
      if (ending !== "done") return ending;
    }
    return "done";
  }

  #statement(node: StatementNode, dot: Value, frame: Frame): Ending {
    this.#step(frame, node.line);
    switch (node.kind) {
      case "text":
        this.#write(node.text, frame, node.line);
        return "done";
      case "action":
        this.#action(node.pipe, dot, frame);
        return "done";
      case "template":
        this.#call(node, dot, frame);
        return "done";
      case "if":
      case "with":
        return this.#branch(node, dot, frame);
      case "range":
        return this.#range(node, dot, frame);
      case "break":
      case "continue":
        return node.kind;
    }
  }

  #action(pipe: PipeNode, dot: Value, frame: Frame): void {
    const value = this.#pipe(pipe, dot, frame);
    if (pipe.declares.length > 0) return;
    if (typeof value === "function") this.#fail(frame, pipe, `can't print ${shownWord(pipe)} of type func`);
    this.#write(value === undefined ? "<no value>" : sprint([value]), frame, pipe.line);
  }

  #branch(node: BranchNode, dot: Value, frame: Frame): Ending {
    const known = frame.variables.length;
    const value = this.#pipe(node.pipe, dot, frame);
    const chosen = isTrue(value);
    const inner = chosen && node.kind === "with" ? value : dot;
    const ending = this.#list((chosen ? node.body : node.otherwise) ?? [], inner, frame);
    frame.variables.length = known;
    return ending;
  }

  #range(node: BranchNode, dot: Value, frame: Frame): Ending {
    const known = frame.variables.length;
    const value = this.#pipe({ ...node.pipe, declares: [] }, dot, frame);
    let ending: Ending = "done";
    let empty = true;
    for (const [key, item] of this.#itemsOf(value, node, frame)) {
      empty = false;
      this.#step(frame, node.line);
      this.#bind(node.pipe, typeof value === "bigint" ? [key] : [key, item], frame);
      ending = this.#list(node.body, item, frame);
      frame.variables.length = known;
      if (ending === "break") break;
    }
    return empty ? this.#list(node.otherwise ?? [], dot, frame) : "done";
  }

  *#itemsOf(value: Value, node: BranchNode, frame: Frame): Generator<readonly [key: Value, item: Value]> {
    if (isList(value)) for (const [index, item] of value.entries()) yield [BigInt(index), item];
    else if (isMap(value)) yield* entriesOf(value) ?? [];
    else if (typeof value === "bigint") for (let index = 0n; index < value; index++) yield [index, index];
    else if (value !== undefined && value !== null)
      this.#fail(frame, node.pipe, `range can't iterate over ${sprint([value])}`);
  }

  /** One variable gets the item, two get key and item; of a number there is only the key. */
  #bind({ declares, assigns }: PipeNode, values: readonly Value[], frame: Frame): void {
    const wanted = declares.length === 1 ? values.slice(-1) : values;
    for (const [index, name] of declares.entries()) this.#set(frame, { name, value: wanted[index] }, assigns);
  }

  #set({ variables }: Frame, { name, value }: Variable, assigns: boolean): void {
    const found = assigns ? variables.findLast((variable) => variable.name === name) : undefined;
    if (found === undefined) variables.push({ name, value });
    else found.value = value;
  }

  #call({ name, pipe, line }: TemplateNode, dot: Value, frame: Frame): void {
    const where = { line, text: `template ${JSON.stringify(name)}` };
    if (!this.#input.templates.has(name)) this.#failAt(frame, where, `template ${JSON.stringify(name)} not defined`);
    if (frame.depth >= this.#input.limits.depth)
      this.#failAt(frame, where, `exceeded maximum template depth (${this.#input.limits.depth})`);
    this.template(name, pipe === undefined ? undefined : this.#pipe(pipe, dot, frame), frame.depth + 1);
  }

  #pipe({ commands, declares, assigns }: PipeNode, dot: Value, frame: Frame): Value {
    let value: Value;
    for (const [index, command] of commands.entries()) {
      const piped = index === 0 ? [] : [value];
      // What a pipeline gives has left its interface: a nil in it is no value at all.
      value = this.#command(command, { dot, frame, piped }) ?? undefined;
    }
    for (const name of declares) this.#set(frame, { name, value }, assigns);
    return value;
  }

  #command({ words, line }: CommandNode, scope: Scope): Value {
    this.#step(scope.frame, line);
    const [first, ...rest] = words;
    if (first === undefined) return undefined;
    if (first.kind === "function") return this.#function(first, rest, scope);
    const names = "names" in first ? first.names : [];
    if (names.length > 0) {
      const args = () => [...rest.map((word) => this.#word(word, scope)), ...scope.piped];
      const hasArguments = rest.length > 0 || scope.piped.length > 0;
      return this.#fields(this.#base(first, scope), { word: first, names, args, hasArguments, scope });
    }
    if (first.kind === "nil") this.#fail(scope.frame, first, "nil is not a command");
    if (rest.length > 0 || scope.piped.length > 0)
      this.#fail(scope.frame, first, `can't give argument to non-function ${shownWord(first)}`);
    return this.#word(first, scope);
  }

  #word(word: WordNode, scope: Scope): Value {
    switch (word.kind) {
      case "dot":
        return scope.dot;
      case "nil":
        return null;
      case "constant":
        return word.value;
      case "function":
        return this.#function(word, [], { ...scope, piped: [] });
      case "pipe":
        return this.#pipe(word, scope.dot, scope.frame);
      case "field":
      case "variable":
      case "chain": {
        const base = this.#base(word, scope);
        return this.#fields(base, { word, names: word.names, args: () => [], hasArguments: false, scope });
      }
    }
  }

  /** What the fields of a word are taken from. */
  #base(word: WordNode, scope: Scope): Value {
    if (word.kind === "variable")
      return scope.frame.variables.findLast((variable) => variable.name === word.name)?.value;
    return word.kind === "chain" ? this.#word(word.node, { ...scope, piped: [] }) : scope.dot;
  }

  #fields(base: Value, { word, names, args, hasArguments, scope }: FieldsInput): Value {
    let value = base;
    for (const [index, name] of names.entries()) {
      const isLast = index === names.length - 1;
      const fail = (message: string) => this.#fail(scope.frame, word, message);
      const item = this.#field(value, name, fail);
      const isMethod = typeof item === "function" && value instanceof Struct;
      if (isLast && hasArguments && !isMethod) fail(`${name} is not a method but has arguments`);
      value = isMethod ? this.#invoke(() => item(...(isLast ? args() : [])), word, scope) : item;
    }
    return value;
  }

  #field(value: Value, name: string, fail: (message: string) => never): Value {
    if (value === undefined) return undefined;
    if (value === null) return fail(`nil pointer evaluating interface {}.${name}`);
    if (isMap(value)) return hasKey(value, name) ? itemOf(value, name) : undefined;
    if (value instanceof Struct && value.fields.has(name)) return value.fields.get(name);
    return fail(`can't evaluate field ${name} in type ${typeName(value)}`);
  }

  #function(word: WordNode & { kind: "function" }, rest: readonly WordNode[], scope: Scope): Value {
    const { name } = word;
    if (name === "and" || name === "or") return this.#shortCircuit(word, rest, scope);
    const called = this.#input.functions.get(name);
    if (called === undefined) return this.#fail(scope.frame, word, `"${name}" is not a defined function`);
    const args = [...rest.map((one) => this.#word(one, scope)), ...scope.piped];
    return this.#invoke(() => called(...args), word, scope);
  }

  /** `and` and `or` do not look at arguments behind the one that decides. */
  #shortCircuit(word: WordNode & { kind: "function" }, rest: readonly WordNode[], scope: Scope): Value {
    if (rest.length + scope.piped.length === 0)
      this.#fail(scope.frame, word, `wrong number of args for ${word.name}: want at least 1 got 0`);
    let value: Value;
    for (const one of rest) {
      value = this.#word(one, scope);
      if (isTrue(value) === (word.name === "or")) return value;
    }
    return scope.piped.length > 0 ? scope.piped[0] : value;
  }

  #invoke(call: () => Value, word: WordNode, { frame }: Scope): Value {
    try {
      return this.#values.counted(call());
    } catch (thrown) {
      if (!(thrown instanceof CallError)) throw thrown;
      const name = shownWord(word).replace(/^.*\./, "");
      return this.#fail(frame, word, `error calling ${name}: ${thrown.message}`);
    }
  }

  #write(text: string, frame: Frame, line: number): void {
    this.#written += text.length;
    const { output } = this.#input.limits;
    if (this.#written > output) this.#failAt(frame, { line, text: "output" }, `more than ${output} letters of output`);
    this.output.push(text);
  }

  #step(frame: Frame, line: number): void {
    const { steps } = this.#input.limits;
    if (++this.#steps > steps) this.#failAt(frame, { line, text: "step" }, `more than ${steps} steps`);
  }

  #fail(frame: Frame, word: WordNode, message: string): never {
    return this.#failAt(frame, { line: word.line, text: shownWord(word) }, message);
  }

  #failAt({ name }: Frame, { line, text }: { readonly line: number; readonly text: string }, message: string): never {
    throw new TemplateError(`template: ${name}:${line}: executing "${name}" at <${text}>: ${message}`, line);
  }
}

interface Scope {
  readonly dot: Value;
  readonly frame: Frame;
  /** What the command before gave. */
  readonly piped: readonly Value[];
}

interface FieldsInput {
  readonly word: WordNode;
  readonly names: readonly string[];
  /** Of the last name, when it is a method. */
  readonly args: () => readonly Value[];
  readonly hasArguments: boolean;
  readonly scope: Scope;
}
