/** A strict reader of Prometheus' text form: what a lenient one lets pass is a problem here. */

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const COMMENT = new RegExp(`^# (HELP|TYPE) (${NAME}) (.*)$`);
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\]|\\\\["\\\\n])*"';
const VALUE = "NaN|[+-]Inf|[+-]?(?:\\d+\\.?\\d*|\\.\\d+)(?:e[+-]?\\d+)?";
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*,?)?\\})? (${VALUE})$`);
const TYPES = new Set(["counter", "gauge", "histogram", "summary", "untyped"]);

/** Everything that is wrong with an exposition, one line each. */
export function expositionProblems(text: string): string[] {
  const reader = new Reader();
  const lines = text.split("\n");
  if (lines.pop() !== "") reader.problems.push("the last line does not end");
  for (const line of lines) if (line !== "") reader.read(line);
  return reader.problems;
}

class Reader {
  readonly problems: string[] = [];
  readonly #said = new Set<string>();
  readonly #types = new Map<string, string>();
  readonly #series = new Set<string>();
  readonly #families = new Set<string>();
  #family = "";

  read(line: string): void {
    if (line.startsWith("#")) this.#comment(line);
    else this.#sample(line);
  }

  #comment(line: string): void {
    const [, what = "", name = "", rest = ""] = COMMENT.exec(line) ?? [];
    if (what === "") return;
    if (this.#said.has(`${what} ${name}`)) this.problems.push(`${what} twice: ${name}`);
    this.#said.add(`${what} ${name}`);
    if (what !== "TYPE") return;
    if (!TYPES.has(rest)) this.problems.push(`unknown type: ${line}`);
    if (this.#families.has(name)) this.problems.push(`type after the samples: ${name}`);
    this.#types.set(name, rest);
  }

  #sample(line: string): void {
    const [, name = "", labels = ""] = SAMPLE.exec(line) ?? [];
    if (name === "") {
      this.problems.push(`no sample: ${line}`);
      return;
    }
    const series = `${name}{${labels}}`;
    if (this.#series.has(series)) this.problems.push(`twice: ${series}`);
    this.#series.add(series);
    const family = this.#familyOf(name);
    if (!this.#types.has(family)) this.problems.push(`no type: ${name}`);
    if (family === this.#family) return;
    if (this.#families.has(family)) this.problems.push(`not together: ${family}`);
    this.#families.add(family);
    this.#family = family;
  }

  /** Histograms and summaries are made of several names. */
  #familyOf(name: string): string {
    const whole = name.replace(/_(bucket|sum|count)$/, "");
    return ["histogram", "summary"].includes(this.#types.get(whole) ?? "") ? whole : name;
  }
}
