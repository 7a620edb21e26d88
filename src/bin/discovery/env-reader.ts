import { parseDuration } from "#lib/duration.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** Reads typed values from the environment and collects every problem. An empty variable counts as unset. */
export class EnvReader {
  readonly problems: string[] = [];
  readonly #env: Env;

  constructor(env: Env) {
    this.#env = env;
  }

  text(name: string, fallback: string): string {
    return this.#env[name] || fallback;
  }

  optional(name: string): string | undefined {
    return this.#env[name] || undefined;
  }

  /** Separated by commas. */
  list(name: string): readonly string[] {
    return this.text(name, "")
      .split(",")
      .map((item) => item.trim())
      .filter((item) => item !== "");
  }

  /** As Go reads booleans. */
  flag(name: string, fallback: boolean): boolean {
    const value = this.optional(name);
    if (value === undefined) return fallback;
    if (/^(1|t|true)$/i.test(value)) return true;
    if (/^(0|f|false)$/i.test(value)) return false;
    return this.#problem(name, `"${value}" is neither true nor false`, fallback);
  }

  durationMs(name: string, fallbackMs: number): number {
    const value = this.optional(name);
    if (value === undefined) return fallbackMs;
    const parsed = parseDuration(value);
    return parsed !== undefined && parsed > 0
      ? parsed
      : this.#problem(name, `"${value}" is not a duration above 0, such as 24h`, fallbackMs);
  }

  #problem<T>(name: string, message: string, fallback: T): T {
    this.problems.push(`${name}: ${message}`);
    return fallback;
  }
}
