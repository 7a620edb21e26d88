import { parseDuration } from "./duration.ts";

/** Variables by name; whoever runs a program hands its own environment down. */
export type Env = Readonly<Record<string, string | undefined>>;

interface Kind<T> {
  /** What a value must be, for people. */
  readonly wanted: string;
  readonly parse: (text: string) => T | undefined;
}

const BOOLEAN: Kind<boolean> = {
  wanted: "true or false",
  parse: (text) => (/^(1|t|true)$/i.test(text) ? true : /^(0|f|false)$/i.test(text) ? false : undefined),
};
const WHOLE_NUMBER: Kind<number> = {
  wanted: "a whole number",
  parse: (text) => (/^\d+$/.test(text) ? Number(text) : undefined),
};
const PORT: Kind<number> = {
  wanted: "a port from 1 to 65535",
  parse: (text) => (/^\d+$/.test(text) ? within(Number(text), 1, 65_535) : undefined),
};
const RATIO: Kind<number> = { wanted: "a number from 0 to 1", parse: (text) => within(Number(text), 0, 1) };
const PERCENT: Kind<number> = { wanted: "a number from 0 to 100", parse: (text) => within(Number(text), 0, 100) };
const DURATION: Kind<number> = { wanted: 'a duration such as "5s"', parse: parseDuration };
const LIFETIME: Kind<number> = {
  wanted: 'a duration above 0 such as "24h"',
  parse: (text) => (Number(parseDuration(text)) > 0 ? parseDuration(text) : undefined),
};

function within(value: number, least: number, most: number): number | undefined {
  return value >= least && value <= most ? value : undefined;
}

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
    return this.string(name)
      .split(",")
      .map((item) => item.trim())
      .filter((item) => item !== "");
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
  prefixed(prefix: string): Record<string, string> {
    const entries = Object.entries(this.#env).flatMap(([name, value]) =>
      name.startsWith(prefix) && value !== undefined ? [[name.slice(prefix.length), value] as const] : [],
    );
    return Object.fromEntries(entries);
  }

  #parsed<T>(name: string, fallback: T, { wanted, parse }: Kind<T>): T {
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
