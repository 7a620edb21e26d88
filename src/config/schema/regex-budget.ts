/** Limits what the regular expressions of one object cost together: compiling them must not keep everything else waiting. */

import { formatField } from "./field-path.ts";
import { error, type Problem } from "./problem.ts";
import { regexCost } from "./regex-cost.ts";

/** Enough for hundreds of expressions as people write them; compiling as much takes less than 100 ms. */
const MAX_REGEX_COST = 60_000;

/** Adds up the regular expressions of an object. */
export class RegexBudget {
  #total = 0;
  #most = { at: "", cost: 0 };

  /** Counts one expression. */
  add(regex: string, at: string): void {
    const cost = regexCost(regex);
    this.#total += cost;
    if (cost > this.#most.cost) this.#most = { at, cost };
  }

  /** Counts those in data of any shape: in Envoy's configuration their field is called `regex`. */
  addAllIn(data: unknown, at: string): void {
    const open: { readonly value: unknown; readonly at: string }[] = [{ value: data, at }];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (typeof next.value !== "object" || next.value === null) continue;
      const isList = Array.isArray(next.value);
      for (const [name, value] of Object.entries(next.value)) {
        const field = formatField(next.at, isList ? Number(name) : name);
        if (name === "regex" && typeof value === "string") this.add(value, field);
        else open.push({ value, at: field });
      }
    }
  }

  /** Names the most expensive expression when all of them together are too expensive. */
  problem(): Problem | undefined {
    if (this.#total <= MAX_REGEX_COST) return undefined;
    const [own, all] = [this.#most.cost, this.#total].map((cost) => Math.ceil(cost));
    const rest = own === all ? "" : `, and all of this object have ${all}`;
    return error(
      this.#most.at,
      `is too large a regular expression: it compiles to about ${own} instructions${rest}, of at most ${MAX_REGEX_COST} for an object`,
    );
  }
}
