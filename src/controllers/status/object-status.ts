/**
 * Conditions in the status of Istio's objects: how many proxies have them.
 *
 *     each replica: push journal --> ConfigMap of its own      the leader: all ConfigMaps --> status of objects
 */
import { type ConfigObject, objectKey } from "#config/config-object.ts";
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import { isRecord } from "#lib/is-record.ts";
import { ApiError, type KubernetesApi, MERGE_PATCH, type RawObject } from "#lib/kubernetes/api-client.ts";
import { follow } from "#lib/kubernetes/follow.ts";
import { troubleText } from "#lib/kubernetes/missing-right.ts";
import { pathOf, type ResourceType } from "#lib/kubernetes/resource-types.ts";
import type { Logger } from "#lib/log.ts";
import type { Source } from "#model/ports.ts";
import { Rivals } from "../rivals.ts";
import { WorkQueue } from "../work-queue.ts";
import {
  type Condition,
  conditionsOf,
  type Distribution,
  joinedDistribution,
  type Lag,
  OWN_CONDITIONS,
} from "./distribution.ts";

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

export interface ObjectStatusOptions extends Omit<ReportOptions, "local"> {
  readonly source: Source;
  /** Objects that have a status. */
  readonly types: readonly ResourceType[];
  readonly now: () => number;
}

const CONFIG_MAPS = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };
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

/** Writes conditions until the signal aborts. Only one replica may do this at a time. */
export async function keepObjectStatus(options: ObjectStatusOptions, signal: AbortSignal): Promise<void> {
  const { api, namespace, log, intervalMs = INTERVAL_MS } = options;
  const reports = new Map<string, Distribution>();
  const take = ({ metadata, data }: RawObject) => {
    const report = readReport(isRecord(data) ? data[KEY] : undefined);
    if (report !== undefined) reports.set(metadata.name, report);
  };
  const following = follow({
    api,
    type: CONFIG_MAPS,
    namespace,
    labelSelector: `${LABEL}=true`,
    backoff: new Backoff(RETRY),
    signal,
    follower: {
      replace: async (objects) => {
        reports.clear();
        objects.forEach(take);
      },
      put: take,
      remove: ({ metadata }) => void reports.delete(metadata.name),
      trouble: (problem) => {
        if (problem !== undefined) log.warn("reports cannot be read", { reason: troubleText(problem, CONFIG_MAPS) });
      },
    },
  });
  const writer = new StatusWriter(options);
  while (!signal.aborted) {
    // Counts change with every proxy that comes: they are written now and then.
    await sleep(intervalMs, signal);
    const all = livingReports(reports, options);
    if (!signal.aborted && all.length > 0) writer.look(joinedDistribution(all));
  }
  await writer.stop();
  await following;
}

/** Without those of replicas whose pod is gone. Pods tell only where our own is among them. */
function livingReports(
  reports: ReadonlyMap<string, Distribution>,
  { source, namespace, instance }: ObjectStatusOptions,
): readonly Distribution[] {
  const pods = source.objects().filter(({ kind, metadata }) => kind === "Pod" && metadata.namespace === namespace);
  const names = new Set(pods.map(({ metadata }) => `${NAME_START}${metadata.name}`));
  const tells = names.has(`${NAME_START}${instance}`);
  return [...reports].flatMap(([name, report]) => (tells && !names.has(name) ? [] : [report]));
}

class StatusWriter {
  readonly #options: ObjectStatusOptions;
  readonly #types: ReadonlyMap<string, ResourceType>;
  /** As last written or found. */
  readonly #written = new WeakMap<object, string>();
  readonly #wanted = new Map<string, { readonly object: ConfigObject; readonly conditions: readonly Condition[] }>();
  readonly #queue: WorkQueue;
  /** Our conditions of each object, as we last wrote them. */
  readonly #last = new Map<string, string>();
  readonly #rivals = new Rivals(() => performance.now());

  constructor(options: ObjectStatusOptions) {
    this.#options = options;
    this.#types = new Map(options.types.map((type) => [type.kind, type]));
    this.#queue = new WorkQueue({
      work: (key) => this.#write(key),
      failed: (object, problem) => {
        const [kind = ""] = object.split("/");
        const type = this.#types.get(kind) ?? CONFIG_MAPS;
        const reason = troubleText(problem, { ...type, plural: `${type.plural}/status` }, ["get", "patch"]);
        options.log.warn("the status of an object cannot be written", { object, reason });
      },
    });
  }

  /** Finds objects whose conditions are others than they were written. */
  look(distribution: Distribution): void {
    const { source } = this.#options;
    const errors = source.problems().filter(({ severity }) => severity === "error");
    const invalid = new Map(errors.map(({ object, field, message }) => [object, `${field} ${message}`.trim()]));
    for (const object of source.objects()) {
      if (!this.#types.has(object.kind)) continue;
      const key = objectKey(object);
      const conditions = conditionsOf(key, distribution, invalid.get(key));
      if (this.#written.get(object) === JSON.stringify(conditions)) continue;
      this.#wanted.set(key, { object, conditions });
      this.#queue.add(key);
    }
  }

  stop(): Promise<void> {
    return this.#queue.stop();
  }

  async #write(key: string): Promise<void> {
    const wanted = this.#wanted.get(key);
    const type = this.#types.get(key.split("/")[0] ?? "");
    if (wanted === undefined || type === undefined) return;
    this.#wanted.delete(key);
    // The next look asks for it again.
    if (this.#rivals.pauseMs(key) > 0) return;
    const { object, conditions } = wanted;
    const { name, namespace } = object.metadata;
    try {
      const found = await this.#options.api.call({ path: pathOf(type, { name, namespace }) });
      this.#compare(key, found);
      const status = statusWith(found, conditions, new Date(this.#options.now()).toISOString());
      const path = pathOf(type, { name, namespace, subresource: "status" });
      if (status !== undefined)
        await this.#options.api.call({ method: "PATCH", path, body: { status }, contentType: MERGE_PATCH });
      this.#last.set(key, conditionTexts(conditions));
    } catch (problem) {
      if (!(problem instanceof ApiError) || problem.status !== 404) throw problem;
    }
    this.#written.set(object, JSON.stringify(conditions));
  }

  /** Whether what we wrote is still there. */
  #compare(key: string, found: RawObject): void {
    const last = this.#last.get(key);
    if (last === undefined || last === conditionTexts(ownConditions(found))) return;
    this.#rivals.wrote(key);
    if (this.#rivals.pauseMs(key) > 0)
      this.#options.log.warn("somebody else keeps writing the status: is there a second control plane?", {
        object: key,
      });
  }
}

/** The status with our conditions in it, beside those of others; undefined when it has them already. */
export function statusWith(
  { status, metadata: { generation } }: RawObject,
  conditions: readonly Condition[],
  now: string,
): object | undefined {
  const before = allConditions(status);
  const own = before.filter(isOwn);
  const observed = isRecord(status) ? Number(status.observedGeneration ?? 0) : 0;
  if (conditionTexts(own) === conditionTexts(conditions) && observed === (generation ?? 0)) return undefined;
  const next = conditions.map((condition) => {
    const same = own.find(({ type, status: value }) => type === condition.type && value === condition.status);
    return { ...condition, lastTransitionTime: same?.lastTransitionTime ?? now, lastProbeTime: now };
  });
  const others = before.filter((each) => !isOwn(each));
  return { conditions: [...others, ...next], ...(generation !== undefined && { observedGeneration: generation }) };
}

function ownConditions({ status }: RawObject): readonly object[] {
  return allConditions(status).filter(isOwn);
}

function allConditions(status: unknown): readonly Readonly<Record<string, unknown>>[] {
  return isRecord(status) && Array.isArray(status.conditions) ? status.conditions.filter(isRecord) : [];
}

function isOwn({ type }: Readonly<Record<string, unknown>>): boolean {
  return OWN_CONDITIONS.has(String(type));
}

/** What counts of conditions: not when they were looked at. */
function conditionTexts(conditions: readonly object[]): string {
  const text = (each: object) =>
    ["type", "status", "reason", "message"].map((name) => Reflect.get(each, name)).join("\n");
  return conditions.map(text).join();
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
