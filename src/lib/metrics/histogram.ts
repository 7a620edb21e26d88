/**
 * A histogram in Prometheus' text form, of the control plane and of agents. Each push to a proxy makes five observations, and
 * prom-client takes a microsecond for one: here it is a look at a few bounds.
 */
export interface HistogramOptions {
  /** Upper bounds, in rising order. */
  readonly buckets: readonly number[];
  /** Names of labels; none unless given. */
  readonly labels?: readonly string[];
}

type Labels = Readonly<Record<string, string>>;

interface Series {
  /** As they are written behind the bound. */
  readonly labels: readonly string[];
  /** By bucket, and last what is above all bounds; not cumulative. */
  readonly counts: number[];
  sum: number;
}

export class Histogram {
  readonly #buckets: readonly number[];
  readonly #labels: readonly string[];
  /** By the values of their labels. */
  readonly #series = new Map<string, Series>();

  constructor({ buckets, labels = [] }: HistogramOptions) {
    this.#buckets = buckets;
    this.#labels = labels;
    if (labels.length === 0) this.#of({});
  }

  observe(value: number, labels: Labels = {}): void {
    const buckets = this.#buckets;
    if (!Number.isFinite(value)) throw new TypeError(`a histogram cannot observe ${value}`);
    let bucket = 0;
    while (bucket < buckets.length && value > (buckets[bucket] ?? 0)) bucket++;
    const series = this.#of(labels);
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.sum += value;
  }

  #of(labels: Labels): Series {
    const names = this.#labels;
    const values = names.length === 0 ? "" : names.map((name) => labels[name] ?? "").join("\0");
    const known = this.#series.get(values);
    if (known !== undefined) return known;
    const made = {
      labels: names.map((name) => `${name}="${escaped(labels[name] ?? "")}"`),
      counts: new Array<number>(this.#buckets.length + 1).fill(0),
      sum: 0,
    };
    this.#series.set(values, made);
    return made;
  }

  /** The samples, under that name. */
  lines(name: string): readonly string[] {
    return [...this.#series.values()].flatMap((series) => this.#linesOf(series, name));
  }

  #linesOf({ labels, counts, sum }: Series, name: string): readonly string[] {
    let count = 0;
    const cumulative = counts.map((added, index) => {
      count += added;
      return `${name}_bucket{${[`le="${this.#buckets[index] ?? "+Inf"}"`, ...labels].join(",")}} ${count}`;
    });
    const set = labels.length === 0 ? "" : `{${labels.join(",")}}`;
    return [...cumulative, `${name}_sum${set} ${sum}`, `${name}_count${set} ${count}`];
  }
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}
