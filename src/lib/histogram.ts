/**
 * A histogram in Prometheus' text form. Each push to a proxy makes five observations, and prom-client takes a microsecond for
 * one: here it is a look at a few bounds.
 */
export interface HistogramOptions {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds, in rising order. */
  readonly buckets: readonly number[];
}

type Labels = Readonly<Record<string, string>>;

interface Series {
  /** As they are written before other labels. */
  readonly labels: readonly string[];
  /** By bucket, and last what is above all bounds; not cumulative. */
  readonly counts: number[];
  sum: number;
}

export class Histogram {
  readonly #options: HistogramOptions;
  /** By the values of their labels. */
  readonly #series = new Map<string, Series>();

  constructor(options: HistogramOptions) {
    this.#options = options;
    if (options.labels.length === 0) this.#of({});
  }

  observe(value: number, labels: Labels): void {
    const { name, buckets } = this.#options;
    if (!Number.isFinite(value)) throw new TypeError(`${name} cannot observe ${value}`);
    let bucket = 0;
    while (bucket < buckets.length && value > (buckets[bucket] ?? 0)) bucket++;
    const series = this.#of(labels);
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.sum += value;
  }

  #of(labels: Labels): Series {
    const { labels: names, buckets } = this.#options;
    const values = names.length === 0 ? "" : names.map((name) => labels[name] ?? "").join("\0");
    const known = this.#series.get(values);
    if (known !== undefined) return known;
    const made = {
      labels: names.map((name) => `${name}="${escaped(labels[name] ?? "").replaceAll('"', '\\"')}"`),
      counts: new Array<number>(buckets.length + 1).fill(0),
      sum: 0,
    };
    this.#series.set(values, made);
    return made;
  }

  /** The exposition, with a line break at its end. */
  text(): string {
    const { name, help } = this.#options;
    const lines = [...this.#series.values()].flatMap((series) => this.#lines(series));
    return [`# HELP ${name} ${escaped(help)}`, `# TYPE ${name} histogram`, ...lines, ""].join("\n");
  }

  #lines({ labels, counts, sum }: Series): readonly string[] {
    const { name, buckets } = this.#options;
    let count = 0;
    const cumulative = counts.map((added, index) => {
      count += added;
      return `${name}_bucket{${[`le="${buckets[index] ?? "+Inf"}"`, ...labels].join(",")}} ${count}`;
    });
    const set = labels.length === 0 ? "" : `{${labels.join(",")}}`;
    return [...cumulative, `${name}_sum${set} ${sum}`, `${name}_count${set} ${count}`];
  }
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
