/** Who is admitted to each port; what is refused is counted and logged. */
import { Admission, type AdmissionLimits, type PeerRefusal, type RefusalReason } from "#lib/admission/admission.ts";
import { LimitedLog } from "#lib/log/limited-log.ts";
import type { Logger } from "#lib/log/log.ts";
import type { MetricDefinition, MetricLabels } from "#lib/metrics/metrics.ts";

export const ADMISSION_METRICS = {
  mizzen_refused_peers_total: {
    type: "counter",
    help: "Connections and streams that were refused or cut, by port and reason",
    labels: ["port", "what", "reason"],
  },
} as const satisfies Record<string, MetricDefinition>;

export interface AdmissionCounters {
  count(name: keyof typeof ADMISSION_METRICS, labels: MetricLabels): void;
}

/** The services log these themselves, and know more about them. */
const LOGGED_ELSEWHERE: ReadonlySet<RefusalReason> = new Set(["unauthenticated", "forbidden", "invalid"]);

/** Admission to ports that share nothing but the log and the metric. */
export class Admissions {
  readonly #metrics: AdmissionCounters;
  readonly #log: Logger;

  constructor(metrics: AdmissionCounters, log: Logger) {
    this.#metrics = metrics;
    this.#log = log;
  }

  /** A new budget, for one port. */
  of(port: number, limits: Partial<AdmissionLimits> = {}): Admission {
    const log = new LimitedLog({ log: this.#log, now: () => performance.now() });
    const onRefused = ({ what, reason, peer }: PeerRefusal) => {
      this.#metrics.count("mizzen_refused_peers_total", { port: String(port), what, reason });
      if (!LOGGED_ELSEWHERE.has(reason)) log.warn(`${what} refused`, { port, peer, reason });
    };
    return new Admission({ limits, onRefused });
  }
}
