/**
 * Environment variables as a table: each row says what a variable is called, what it may be, what holds without it and
 * what it is for. Programs read their whole environment through such a table, and their reference page is made from it.
 */
import { formatDuration, type Millis } from "@mizzen/go-text/duration";
import {
  BOOLEAN,
  DURATION,
  type EnvKind,
  isGoInteger,
  LIFETIME,
  PERCENT,
  PORT_TO_OPEN,
  parseList,
  RANGES,
  RATIO,
  WHOLE_NUMBER,
  wrongValue,
} from "./env-kinds.ts";

/** Variables by name; whoever runs a program passes its own environment on. */
export type Env = Readonly<Record<string, string | undefined>>;

/** One row. */
export interface Variable<T> extends EnvKind<T> {
  /** What a value is, for people. */
  readonly type: string;
  readonly fallback: T;
  /** The default as one would write it; empty when there is none. */
  readonly shown: string;
  readonly meaning: string;
  /** Whether a wrong value is an error; else it is told, and the default holds, as in Istio's programs. */
  readonly strict: (text: string) => boolean;
  /** The row stands for all variables whose names start with its own. */
  readonly prefix: boolean;
}

/** Rows by the name of their variable. */
export type EnvTable = Readonly<Record<string, Variable<unknown>>>;

/** What a table gives, by the names of the variables. */
export type EnvValues<Table extends EnvTable> = {
  readonly [Name in keyof Table]: Table[Name] extends Variable<infer T> ? T : never;
};

/** The values of a table's variables. */
export interface EnvReading<Table extends EnvTable> {
  readonly values: EnvValues<Table>;
  /** Wrong values without which the program cannot do what was asked for. */
  readonly problems: readonly string[];
  /** Wrong values in whose place the default holds. */
  readonly warnings: readonly string[];
}

/** Reads all variables of a table. */
export function readEnvironment<Table extends EnvTable>(table: Table, env: Env): EnvReading<Table> {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  const warnings: string[] = [];
  for (const [name, variable] of Object.entries(table)) {
    values[name] = variable.prefix ? startingWith(name, env) : variable.fallback;
    const text = env[name];
    if (variable.prefix || text === undefined) continue;
    const value = variable.parse(text);
    if (value !== undefined) values[name] = value;
    else if (text !== "") {
      const sentence = wrongValue(name, variable.wanted, text);
      if (variable.strict(text)) problems.push(sentence);
      else warnings.push(`${sentence}: ${variable.shown === "" ? "it is ignored" : `${variable.shown} is used`}`);
    }
  }
  return { values: values as EnvValues<Table>, problems, warnings };
}

/** Any text; an empty one is a value, as it is to Go. */
export function text(fallback: string, meaning: string): Variable<string> {
  return row({ type: "text", fallback, shown: fallback, meaning, wanted: "text", parse: (value) => value });
}

/** Text that is told apart from no text. */
export function optionalText(meaning: string): Variable<string | undefined> {
  return { ...text("", meaning), fallback: undefined };
}

/** Text; an empty one counts as unset. */
export function word(fallback: string, meaning: string): Variable<string> {
  return { ...text(fallback, meaning), parse: (value) => value || undefined };
}

/** True or false, in Go's spellings. */
export function flag(fallback: boolean, meaning: string): Variable<boolean> {
  return row({ type: "boolean", fallback, shown: String(fallback), meaning, ...BOOLEAN });
}

/** A flag that is told apart from no flag. */
export function optionalFlag(meaning: string): Variable<boolean | undefined> {
  return { ...flag(false, meaning), fallback: undefined, shown: "" };
}

/** A whole number from 0, as far as numbers are exact unless its kind says less. */
export function wholeNumber(fallback: number, meaning: string, kind = WHOLE_NUMBER): Variable<number> {
  return row({ type: "number", fallback, shown: String(fallback), meaning, ...kind });
}

/** A number that is told apart from no number. */
export function optionalWholeNumber(meaning: string, kind = WHOLE_NUMBER): Variable<number | undefined> {
  return { ...wholeNumber(0, meaning, kind), fallback: undefined, shown: "" };
}

/** A port, or 0 for any that is free. Another number is an error: nobody could listen there, nor would anybody look elsewhere. */
export function port(fallback: number, meaning: string): Variable<number> {
  return { ...row({ type: "port", fallback, shown: String(fallback), meaning, ...PORT_TO_OPEN }), strict: isGoInteger };
}

/** A Go duration, in milliseconds. */
export function duration(fallback: Millis, meaning: string): Variable<Millis> {
  return row({ type: "duration", fallback, shown: formatDuration(fallback), meaning, ...DURATION });
}

/** A duration that is told apart from no duration. */
export function optionalDuration(meaning: string): Variable<Millis | undefined> {
  return { ...duration(0, meaning), fallback: undefined, shown: "" };
}

/** A duration above 0, in milliseconds. */
export function lifetime(fallback: Millis, meaning: string): Variable<Millis> {
  return { ...duration(fallback, meaning), ...LIFETIME };
}

/** A number from 0 to 1. */
export function ratio(fallback: number, meaning: string): Variable<number> {
  return row({ type: "ratio", fallback, shown: String(fallback), meaning, ...RATIO });
}

/** A number from 0 to 100, with fractions. */
export function percent(fallback: number, meaning: string): Variable<number> {
  return row({ type: "percent", fallback, shown: String(fallback), meaning, ...PERCENT });
}

/** One of some values. Another is an error, since there is nothing that could be meant. */
export function choice<const T extends string>(choices: readonly [T, ...T[]], meaning: string): Variable<T> {
  return { ...preference(choices, meaning), strict: () => true };
}

/** One of some values. The first holds in place of another, which is told. */
export function preference<const T extends string>(choices: readonly [T, ...T[]], meaning: string): Variable<T> {
  const parse = (value: string) => choices.find((one) => one === value);
  const names = choices.map((one) => (one === "" ? "empty" : one));
  const [fallback] = choices;
  const wanted = `one of ${names.filter((name) => name !== "empty").join(", ")}`;
  return row({ type: names.join(", "), fallback, shown: fallback, meaning, wanted, parse });
}

/** The same row for values in letters of any case. */
export function caseless<T>(variable: Variable<T>): Variable<T> {
  return { ...variable, parse: (value) => variable.parse(value.toLowerCase()) };
}

/** Texts separated by commas. */
export function list(meaning: string): Variable<readonly string[]> {
  return row({ type: "list", fallback: [], shown: "", meaning, wanted: "a list", parse: parseList });
}

/** Ranges of addresses, separated by commas. */
export function ranges(meaning: string): Variable<readonly string[]> {
  return row({ type: "ranges", fallback: [], shown: "", meaning, ...RANGES });
}

/** All variables whose names start so; their values by the rest of the name. */
export function prefixed(meaning: string): Variable<Readonly<Record<string, string>>> {
  const parse = () => undefined;
  return { ...row({ type: "text", fallback: {}, shown: "", meaning, wanted: "text", parse }), prefix: true };
}

function row<T>(given: Omit<Variable<T>, "strict" | "prefix">): Variable<T> {
  return { ...given, strict: () => false, prefix: false };
}

/** Values of all variables that start with a prefix, by the rest of their name. */
function startingWith(prefix: string, env: Env): Readonly<Record<string, string>> {
  const entries = Object.entries(env).flatMap(([name, value]) =>
    name.startsWith(prefix) && value !== undefined ? [[name.slice(prefix.length), value] as const] : [],
  );
  return Object.fromEntries(entries);
}
