/** Metrics in Prometheus' text form. What can be counted is declared once, as data; there is no global registry. */
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { Histogram } from "./histogram.ts";
import { type DelayFigures, LoopDelay } from "./loop-delay.ts";

export interface MetricDefinition {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels?: readonly string[];
  /** Upper bounds of a histogram. */
  readonly buckets?: readonly number[];
}

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
  readonly #histograms = new Map<string, { readonly help: string; readonly histogram: Histogram }>();

  /** `process` adds what Node knows of itself, the delay of its event loop among it. */
  constructor(definitions: Readonly<Record<Name, MetricDefinition>>, { process = false } = {}) {
    const registers = [this.#registry];
    for (const [name, definition] of Object.entries<MetricDefinition>(definitions)) {
      const { type, help, labels = [], buckets = [] } = definition;
      const options = { name, help, registers, labelNames: [...labels] };
      if (type === "counter") this.#counters.set(name, new Counter(options));
      else if (type === "gauge") this.#gauges.set(name, new Gauge(options));
      else this.#histograms.set(name, { help, histogram: new Histogram({ labels, buckets }) });
    }
    if (process) collectProcessMetrics(this.#registry);
  }

  /** Adds to a counter, or to a gauge where Istio counts with one. */
  count(name: Name, labels: MetricLabels = {}, by = 1): void {
    (this.#counters.get(name) ?? of(this.#gauges, name)).inc(labels, by);
  }

  /** Sets a gauge. */
  set(name: Name, value: number, labels: MetricLabels = {}): void {
    of(this.#gauges, name).set(labels, value);
  }

  /** Drops one series of a gauge: what it was about is gone, and series of whatever strangers named would pile up. */
  remove(name: Name, labels: MetricLabels): void {
    of(this.#gauges, name).remove(labels);
  }

  /** Adds an observation to a histogram. */
  observe(name: Name, value: number, labels: MetricLabels = {}): void {
    of(this.#histograms, name).histogram.observe(value, labels);
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
    const histograms = [...this.#histograms].map(([name, { help, histogram }]) => {
      const head = [
        "",
        `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
        `# TYPE ${name} histogram`,
      ];
      return [...head, ...histogram.lines(name), ""].join("\n");
    });
    return { text: [text, ...histograms].join(""), contentType: this.#registry.contentType };
  }
}

/** By the names that prom-client has for them. */
const DELAY_GAUGES: Readonly<Record<string, [keyof DelayFigures, help: string]>> = {
  nodejs_eventloop_lag_seconds: ["last", "How late the event loop was when it was looked at last, in seconds"],
  nodejs_eventloop_lag_min_seconds: ["min", "The least that the event loop was late"],
  nodejs_eventloop_lag_max_seconds: ["max", "The most that the event loop was late"],
  nodejs_eventloop_lag_mean_seconds: ["mean", "How late the event loop was in the mean"],
  nodejs_eventloop_lag_stddev_seconds: ["stddev", "Standard deviation of how late the event loop was"],
  nodejs_eventloop_lag_p50_seconds: ["p50", "The 50th percentile of how late the event loop was"],
  nodejs_eventloop_lag_p90_seconds: ["p90", "The 90th percentile of how late the event loop was"],
  nodejs_eventloop_lag_p99_seconds: ["p99", "The 99th percentile of how late the event loop was"],
};
/** The longest that a timer can wait: prom-client cannot be told to leave its own monitor of the loop alone. */
const NEVER_MS = 2 ** 31 - 1;

/** What Node knows of itself, and how late its event loop is since it was asked last. */
function collectProcessMetrics(register: Registry): void {
  collectDefaultMetrics({ register, eventLoopMonitoringPrecision: NEVER_MS });
  const delay = new LoopDelay();
  const gauges: { readonly figure: keyof DelayFigures; readonly gauge: Gauge }[] = [];
  const collect = () => {
    const figures = delay.take();
    for (const { figure, gauge } of gauges) gauge.set(figures[figure]);
  };
  for (const [name, [figure, help]] of Object.entries(DELAY_GAUGES)) {
    register.removeSingleMetric(name);
    // They are read in this order: the first of them looks for all.
    const first = gauges.length === 0 && { collect };
    gauges.push({ figure, gauge: new Gauge({ name, help, registers: [register], ...first }) });
  }
}

function of<T>(metrics: ReadonlyMap<string, T>, name: string): T {
  const metric = metrics.get(name);
  if (metric === undefined) throw new Error(`no such metric of this type: ${name}`);
  return metric;
}
