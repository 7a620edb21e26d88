import type { Logger } from "#lib/log/log.ts";
import { oneLine } from "#lib/log/one-line.ts";
import type { ObjectProblem } from "#model/ports.ts";

/** A problem in one line: `reviews.yaml:12: VirtualService/default/reviews: spec.http[0].timeout must be a duration`. */
export function formatProblem({ origin, object, field, message }: ObjectProblem): string {
  const where = origin === undefined ? "" : `${origin.file}:${origin.line}: `;
  // It quotes what users wrote.
  return oneLine(`${where}${object === "" ? "" : `${object}: `}${field === "" ? "" : `${field} `}${message}`);
}

/** Logs each problem once, and again only after it was gone. */
export class ProblemReporter {
  readonly #log: Logger;
  #reported: ReadonlySet<string> = new Set();

  constructor(log: Logger) {
    this.#log = log;
  }

  report(problems: readonly ObjectProblem[]): void {
    const texts = new Map(problems.map((problem) => [formatProblem(problem), problem.severity]));
    for (const [text, severity] of texts) {
      if (this.#reported.has(text)) continue;
      if (severity === "error") this.#log.error(text);
      else this.#log.warn(text);
    }
    this.#reported = new Set(texts.keys());
  }
}
