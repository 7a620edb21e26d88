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
} from "./env-kinds.ts";

/** Variables by name; whoever runs a program hands its own environment down. */
export type Env = Readonly<Record<string, string | undefined>>;

/** Reads variables by type and collects every problem instead of stopping at the first. An empty one counts as unset. */
export class EnvReader {
  readonly problems: string[] = [];
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
    return this.string(name) === "" ? undefined : this.boolean(name, false);
  }

  integer(name: string, fallback: number): number {
    return this.#parsed(name, fallback, WHOLE_NUMBER);
  }

  optionalInteger(name: string): number | undefined {
    return this.string(name) === "" ? undefined : this.integer(name, 0);
  }

  port(name: string, fallback: number): number {
    return this.#parsed(name, fallback, PORT);
  }

  durationMs(name: string, fallback: number): number {
    return this.#parsed(name, fallback, DURATION);
  }

  optionalDurationMs(name: string): number | undefined {
    return this.string(name) === "" ? undefined : this.durationMs(name, 0);
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

  choice<T extends string>(name: string, fallback: T, choices: readonly T[]): T {
    const parse = (text: string) => choices.find((choice) => choice === text);
    return this.#parsed(name, fallback, { wanted: `one of ${choices.join(", ")}`, parse });
  }

  /** Values of all variables that start with a prefix, by the rest of their name. */
  prefixed(prefix: string): Readonly<Record<string, string>> {
    return startingWith(prefix, this.#env);
  }

  #parsed<T>(name: string, fallback: T, { wanted, parse }: EnvKind<T>): T {
    const text = this.string(name);
    if (text === "") return fallback;
    const value = parse(text);
    if (value === undefined) this.#wrong(name, wanted, text);
    return value ?? fallback;
  }

  #wrong(name: string, wanted: string, text: string): void {
    this.problems.push(`${name}: must be ${wanted}, not "${text}"`);
  }
}

/** Values of all variables that start with a prefix, by the rest of their name. */
export function startingWith(prefix: string, env: Env): Readonly<Record<string, string>> {
  const entries = Object.entries(env).flatMap(([name, value]) =>
    name.startsWith(prefix) && value !== undefined ? [[name.slice(prefix.length), value] as const] : [],
  );
  return Object.fromEntries(entries);
}
