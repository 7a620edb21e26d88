/** Metrics in Prometheus' text form. What can be counted is declared once, as data; there is no global registry. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export interface MetricDefinition {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels?: readonly string[];
  /** Upper bounds of a histogram. */
  readonly buckets?: readonly number[];
}

export type MetricDefinitions = Readonly<Record<string, MetricDefinition>>;
export type MetricLabels = Readonly<Record<string, string>>;

/** One value of a gauge that is computed when somebody asks. */
export interface GaugeValue {
  readonly value: number;
  readonly labels?: MetricLabels;
}

export class Metrics<Name extends string = string> {
  readonly #registry = new Registry();
  readonly #counters = new Map<string, Counter>();
  readonly #gauges = new Map<string, Gauge>();
  readonly #histograms = new Map<string, Histogram>();

  /** `process` adds what Node knows of itself, the delay of its event loop among it. */
  constructor(definitions: Readonly<Record<Name, MetricDefinition>>, { process = false } = {}) {
    const registers = [this.#registry];
    for (const [name, { type, help, labels, buckets }] of Object.entries<MetricDefinition>(definitions)) {
      const options = { name, help, registers, labelNames: [...(labels ?? [])] };
      if (type === "counter") this.#counters.set(name, new Counter(options));
      else if (type === "gauge") this.#gauges.set(name, new Gauge(options));
      else this.#histograms.set(name, new Histogram({ ...options, ...(buckets && { buckets: [...buckets] }) }));
    }
    if (process) collectDefaultMetrics({ register: this.#registry });
  }

  /** Adds to a counter, or to a gauge where Istio counts with one. */
  count(name: Name, labels: MetricLabels = {}, by = 1): void {
    (this.#counters.get(name) ?? of(this.#gauges, name)).inc(labels, by);
  }

  /** Sets a gauge. */
  set(name: Name, value: number, labels: MetricLabels = {}): void {
    of(this.#gauges, name).set(labels, value);
  }

  /** Adds an observation to a histogram. */
  observe(name: Name, value: number, labels: MetricLabels = {}): void {
    of(this.#histograms, name).observe(labels, value);
  }

  /** Lets a gauge be computed each time the metrics are read; values that are not given any more disappear. */
  compute(name: Name, values: () => readonly GaugeValue[]): void {
    const gauge = of(this.#gauges, name);
    Object.assign(gauge, {
      collect: () => {
        gauge.reset();
        for (const { value, labels = {} } of values()) gauge.set(labels, value);
      },
    });
  }

  /** The exposition and its content type. */
  async read(): Promise<{ readonly text: string; readonly contentType: string }> {
    // prom-client writes "Nan", which only lenient readers take for the number that is none.
    const text = (await this.#registry.metrics()).replaceAll(/ Nan$/gm, " NaN");
    return { text, contentType: this.#registry.contentType };
  }
}

function of<T>(metrics: ReadonlyMap<string, T>, name: string): T {
  const metric = metrics.get(name);
  if (metric === undefined) throw new Error(`no such metric of this type: ${name}`);
  return metric;
}
