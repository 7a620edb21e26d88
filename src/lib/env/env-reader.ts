import {
  BOOLEAN,
  DURATION,
  type EnvKind,
  LIFETIME,
  PERCENT,
  PORT,
  parseList,
  RATIO,
  WHOLE_NUMBER,
  wrongValue,
} from "./env-kinds.ts";

/** Variables by name; whoever runs a program hands its own environment down. */
export type Env = Readonly<Record<string, string | undefined>>;

/** Reads variables by type and collects what is wrong instead of stopping at the first. An empty one counts as unset. */
export class EnvReader {
  /** Wrong values without which the program cannot do what was asked for. */
  readonly problems: string[] = [];
  /** Wrong values in whose place the default holds, as in Istio's programs. */
  readonly warnings: string[] = [];
  readonly #env: Env;

  constructor(env: Env) {
    this.#env = env;
  }

  string(name: string, fallback = ""): string {
    return this.#env[name] || fallback;
  }

  /** Separated by commas. */
  list(name: string): readonly string[] {
    return parseList(this.string(name));
  }

  /** As Go reads booleans. */
  boolean(name: string, fallback: boolean): boolean {
    return this.#parsed(name, fallback, BOOLEAN);
  }

  optionalBoolean(name: string): boolean | undefined {
    return this.#parsed(name, undefined, BOOLEAN);
  }

  integer(name: string, fallback: number): number {
    return this.#parsed(name, fallback, WHOLE_NUMBER);
  }

  optionalInteger(name: string): number | undefined {
    return this.#parsed(name, undefined, WHOLE_NUMBER);
  }

  port(name: string, fallback: number): number {
    return this.#parsed(name, fallback, PORT);
  }

  durationMs(name: string, fallback: number): number {
    return this.#parsed(name, fallback, DURATION);
  }

  optionalDurationMs(name: string): number | undefined {
    return this.#parsed(name, undefined, DURATION);
  }

  /** A duration that is not 0. */
  lifetimeMs(name: string, fallback: number): number {
    return this.#parsed(name, fallback, LIFETIME);
  }

  /** From 0 to 1. */
  ratio(name: string, fallback: number): number {
    return this.#parsed(name, fallback, RATIO);
  }

  /** From 0 to 100, with fractions. */
  percent(name: string, fallback: number): number {
    return this.#parsed(name, fallback, PERCENT);
  }

  /** Another is a problem, since there is nothing that could be meant. */
  choice<T extends string>(name: string, fallback: T, choices: readonly T[]): T {
    const text = this.string(name);
    const chosen = choices.find((choice) => choice === text);
    if (chosen === undefined && text !== "") this.problems.push(wrongValue(name, `one of ${choices.join(", ")}`, text));
    return chosen ?? fallback;
  }

  /** Values of all variables that start with a prefix, by the rest of their name. */
  prefixed(prefix: string): Readonly<Record<string, string>> {
    return startingWith(prefix, this.#env);
  }

  #parsed<T, Fallback>(name: string, fallback: Fallback, { wanted, parse }: EnvKind<T>): T | Fallback {
    const text = this.string(name);
    if (text === "") return fallback;
    const value = parse(text);
    if (value === undefined) this.warnings.push(`${wrongValue(name, wanted, text)}: its default is used`);
    return value ?? fallback;
  }
}

/** Values of all variables that start with a prefix, by the rest of their name. */
export function startingWith(prefix: string, env: Env): Readonly<Record<string, string>> {
  const entries = Object.entries(env).flatMap(([name, value]) =>
    name.startsWith(prefix) && value !== undefined ? [[name.slice(prefix.length), value] as const] : [],
  );
  return Object.fromEntries(entries);
}
