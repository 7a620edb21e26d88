/**
 * Go's text/template: the language of Istio's bootstrap and injection templates.
 *
 *   source --lexer--> tokens --parser--> nodes --evaluate(value)--> text
 *
 * A template is user input, so it is bounded in depth, steps and output, and whatever is wrong names template and line.
 */
import { execute, type TemplateLimits } from "./evaluate.ts";
import { BUILTIN_FUNCTIONS, LANGUAGE_FUNCTIONS } from "./functions.ts";
import { parseTemplate } from "./parser.ts";
import type { Callable, Value } from "./value.ts";

export interface TemplateOptions {
  /** Stands in messages. */
  readonly name: string;
  /** Besides the functions that every template has; of two with the same name these count. */
  readonly functions?: Readonly<Record<string, Callable>>;
  readonly limits?: Partial<TemplateLimits>;
}

/** A template that is ready to be executed. */
export interface Template {
  /** The text for a value; throws a `TemplateError`. */
  readonly execute: (data: Value) => string;
  /** The same for one of the templates that it defines. */
  readonly executeNamed: (name: string, data: Value) => string;
}

const LIMITS: TemplateLimits = { depth: 500, output: 32 * 1024 * 1024, steps: 5_000_000 };

/** Reads a template; throws a `TemplateError`. */
export function compileTemplate(source: string, { name, functions = {}, limits = {} }: TemplateOptions): Template {
  const table = new Map(Object.entries({ ...BUILTIN_FUNCTIONS, ...functions }));
  const templates = parseTemplate(name, source, (one) => table.has(one) || LANGUAGE_FUNCTIONS.has(one));
  const input = { templates, functions: table, limits: { ...LIMITS, ...limits } };
  const executeNamed: Template["executeNamed"] = (one, data) => execute(input, one, data);
  return { execute: (data) => executeNamed(name, data), executeNamed };
}
