/**
 * How far objects have come to the proxies of all replicas.
 *
 *     each replica: push journal --> ConfigMap of its own      the leader: all ConfigMaps --> one distribution
 */
import { configMapKind } from "#config/kinds/config-map/kind.ts";
import { resourceTypeOf } from "#config/kinds/kind.ts";
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { ApiError, type KubernetesApi, MERGE_PATCH, type RawObject } from "#lib/kubernetes/api-client.ts";
import { follow } from "#lib/kubernetes/follow.ts";
import { troubleText } from "#lib/kubernetes/missing-right.ts";
import { pathOf } from "#lib/kubernetes/resource-types.ts";
import type { Logger } from "#lib/log/log.ts";
import type { Source } from "#model/ports.ts";
import { type Distribution, joinedDistribution, type Lag } from "./distribution.ts";

export interface ReportOptions {
  readonly api: KubernetesApi;
  /** Of the control plane. */
  readonly namespace: string;
  /** This replica. */
  readonly instance: string;
  readonly local: () => Distribution;
  readonly log: Logger;
  readonly intervalMs?: number;
}

export interface ReportReaderOptions extends Omit<ReportOptions, "local" | "intervalMs"> {
  readonly source: Source;
}

const CONFIG_MAPS = resourceTypeOf(configMapKind);
const LABEL = "internal.istio.io/distribution-report";
const NAME_START = "istio-distribution-";
const KEY = "distribution";
const INTERVAL_MS = 1_000;
const RETRY = { initialMs: 200, maxMs: 10_000 };

/** Tells the leader what this replica knows, until the signal aborts; then nothing is left of it. */
export async function reportDistribution(options: ReportOptions, signal: AbortSignal): Promise<void> {
  const { api, namespace, instance, local, log, intervalMs = INTERVAL_MS } = options;
  const name = `${NAME_START}${instance}`;
  const path = pathOf(CONFIG_MAPS, { namespace, name });
  let written = "";
  while (!signal.aborted) {
    const text = JSON.stringify(local());
    try {
      if (text !== written) await writeReport(api, { name, namespace }, text);
      written = text;
    } catch (problem) {
      log.warn("the leader cannot be told of proxies", { reason: troubleText(problem, CONFIG_MAPS, WRITING) });
    }
    await sleep(intervalMs, signal);
  }
  await api.call({ method: "DELETE", path, signal: AbortSignal.timeout(intervalMs) }).catch(() => undefined);
}

const WRITING = ["create", "patch", "delete"];

async function writeReport(api: KubernetesApi, at: { name: string; namespace: string }, text: string): Promise<void> {
  const metadata = { ...at, labels: { [LABEL]: "true" } };
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata, data: { [KEY]: text } };
  try {
    await api.call({ method: "PATCH", path: pathOf(CONFIG_MAPS, at), body, contentType: MERGE_PATCH });
  } catch (problem) {
    if (!(problem instanceof ApiError) || problem.status !== 404) throw problem;
    await api.call({ method: "POST", path: pathOf(CONFIG_MAPS, { namespace: at.namespace }), body });
  }
}

/** What all replicas report. */
export class Reports {
  readonly #options: ReportReaderOptions;
  readonly #known = new Map<string, Distribution>();

  constructor(options: ReportReaderOptions) {
    this.#options = options;
  }

  /** Reads them until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    const { api, namespace, log } = this.#options;
    const follower = {
      replace: async (objects: readonly RawObject[]) => {
        this.#known.clear();
        for (const object of objects) this.#take(object);
      },
      put: (object: RawObject) => this.#take(object),
      remove: ({ metadata }: RawObject) => void this.#known.delete(metadata.name),
      trouble: (problem: unknown) => {
        if (problem !== undefined) log.warn("reports cannot be read", { reason: troubleText(problem, CONFIG_MAPS) });
      },
    };
    const labelSelector = `${LABEL}=true`;
    await follow({ api, type: CONFIG_MAPS, namespace, labelSelector, backoff: new Backoff(RETRY), signal, follower });
  }

  /** What they know together; undefined while nobody has reported. */
  joined(): Distribution | undefined {
    const living = livingReports(this.#known, this.#options);
    return living.length === 0 ? undefined : joinedDistribution(living);
  }

  #take({ metadata, data }: RawObject): void {
    const report = readReport(isRecord(data) ? data[KEY] : undefined);
    if (report !== undefined) this.#known.set(metadata.name, report);
  }
}

/** Without those of replicas whose pod is gone. Pods tell only where our own is among them. */
function livingReports(
  reports: ReadonlyMap<string, Distribution>,
  { source, namespace, instance }: ReportReaderOptions,
): readonly Distribution[] {
  const pods = source.objects().filter(({ kind, metadata }) => kind === "Pod" && metadata.namespace === namespace);
  const names = new Set(pods.map(({ metadata }) => `${NAME_START}${metadata.name}`));
  const tells = names.has(`${NAME_START}${instance}`);
  return [...reports].flatMap(([name, report]) => (tells && !names.has(name) ? [] : [report]));
}

/** Undefined for what is no report. */
function readReport(text: unknown): Distribution | undefined {
  try {
    const value: unknown = JSON.parse(String(text));
    if (!isRecord(value) || typeof value.proxies !== "number" || !isRecord(value.lags)) return undefined;
    const lags = Object.entries(value.lags).map(([object, lag]) => [object, readLag(lag)] as const);
    return { proxies: value.proxies, lags: Object.fromEntries(lags) };
  } catch {
    return undefined;
  }
}

function readLag(value: unknown): Lag {
  const { pending, rejected, error } = isRecord(value) ? value : {};
  return { pending: Number(pending) || 0, rejected: Number(rejected) || 0, error: String(error ?? "") };
}
