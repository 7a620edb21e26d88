/**
 * The status of Istio's objects, as the leader writes it: conditions about the proxies that have them, and what analysis says.
 * What others wrote there stays.
 */
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { documentationUrl, type Finding, levelOf } from "#explain/analysis/message.ts";
import type { Conflict } from "#explain/conflicts/conflict.ts";
import { sleep } from "#lib/async/sleep.ts";
import { isRecord } from "#lib/json/is-record.ts";
import {
  ApiError,
  connectionTrouble,
  type KubernetesApi,
  MERGE_PATCH,
  type RawObject,
} from "#lib/kubernetes/api-client.ts";
import { troubleText } from "#lib/kubernetes/missing-right.ts";
import { pathOf, type ResourceType } from "#lib/kubernetes/resource-types.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { Source } from "#model/ports.ts";
import { Rivals } from "../rivals.ts";
import { WorkQueue } from "../work-queue.ts";
import { type Condition, conditionsOf, type Distribution, OWN_CONDITIONS } from "./distribution.ts";

export interface ObjectStatusOptions {
  readonly api: KubernetesApi;
  readonly source: Source;
  /** Objects that have a status. */
  readonly types: readonly ResourceType[];
  /** How far objects have come, if conditions are written; undefined while that is not known. */
  readonly distribution?: (() => Distribution | undefined) | undefined;
  readonly conflicts: () => readonly Conflict[];
  /** What analysis says, by object, if that is written; undefined while that is not known. */
  readonly findings?: (() => ReadonlyMap<string, readonly Finding[]> | undefined) | undefined;
  readonly now: () => number;
  readonly log: Logger;
  readonly intervalMs?: number;
}

/** What is written about one object; parts that are not given stay as they are. */
export interface OwnStatus {
  readonly conditions?: readonly Condition[] | undefined;
  readonly messages?: readonly StatusMessage[] | undefined;
}

/** A message of analysis, in the form of the API. */
export interface StatusMessage {
  readonly type: { readonly code: string };
  readonly level: string;
  readonly documentationUrl: string;
}

const INTERVAL_MS = 1_000;

/** Writes until the signal aborts. Only one replica may do this at a time. */
export async function keepObjectStatus(options: ObjectStatusOptions, signal: AbortSignal): Promise<void> {
  const writer = new StatusWriter(options);
  while (!signal.aborted) {
    // Counts change with every proxy that comes: they are written now and then.
    await sleep(options.intervalMs ?? INTERVAL_MS, signal);
    if (!signal.aborted) writer.look();
  }
  await writer.stop();
}

/** An object and what is to be written about it. */
interface Wanted {
  readonly type: ResourceType;
  readonly name: string;
  readonly namespace: string;
  /** As the mesh has it; undefined for one that was never valid. */
  readonly object: ConfigObject | undefined;
  readonly own: OwnStatus;
}

class StatusWriter {
  readonly #options: ObjectStatusOptions;
  readonly #types: ReadonlyMap<string, ResourceType>;
  /** Of which version of an object what was written or found. */
  readonly #written = new Map<string, { readonly object: ConfigObject | undefined; readonly text: string }>();
  /** What is still to be written: it is in the queue, or will be again after a pause because it failed. */
  readonly #wanted = new Map<string, Wanted>();
  /** Objects whose status is being written. */
  readonly #writing = new Set<string>();
  readonly #queue: WorkQueue;
  /** Our part of each object's status, as we last wrote it. */
  readonly #last = new Map<string, string>();
  readonly #rivals = new Rivals(() => performance.now());

  constructor(options: ObjectStatusOptions) {
    this.#options = options;
    this.#types = new Map(options.types.map((type) => [type.kind, type]));
    this.#queue = new WorkQueue({
      work: (key) => this.#write(key),
      failed: (object, problem) => {
        // Of a server that is away the source tells, once for all objects.
        if (connectionTrouble(problem) !== undefined) return;
        const type = this.#types.get(object.split("/")[0] ?? "");
        const verbs = ["get", "patch"];
        const reason = type
          ? troubleText(problem, { ...type, plural: `${type.plural}/status` }, verbs)
          : errorText(problem);
        options.log.warn("the status of an object cannot be written", { object, reason });
      },
    });
  }

  /** Finds objects whose status is another than it was written. */
  look(): void {
    const { source, conflicts } = this.#options;
    const [distribution, findings] = [this.#options.distribution?.(), this.#options.findings?.()];
    if (distribution === undefined && findings === undefined) return;
    const errors = source.problems().filter(({ severity }) => severity === "error");
    const invalid = new Map(
      [...Map.groupBy(errors, ({ object }) => object)].map(([object, own]) => [
        object,
        own.map(({ field, message }) => `${field} ${message}`.trim()).join("; "),
      ]),
    );
    const disputed = Map.groupBy(distribution === undefined ? [] : conflicts(), ({ loser }) => loser);
    const objects = new Map<string, ConfigObject | undefined>([...invalid.keys()].map((key) => [key, undefined]));
    for (const object of source.objects()) if (this.#types.has(object.kind)) objects.set(objectKey(object), object);
    for (const [key, object] of objects) {
      const facts = { invalid: invalid.get(key), isNew: object === undefined, conflicts: disputed.get(key) };
      const conditions = distribution && conditionsOf(key, distribution, facts);
      const messages = findings && (findings.get(key) ?? []).map(statusMessage);
      this.#want(key, object, { conditions, messages });
    }
    for (const known of [this.#written, this.#wanted])
      for (const key of known.keys()) if (!objects.has(key)) this.#forget(key);
  }

  stop(): Promise<void> {
    return this.#queue.stop();
  }

  #want(key: string, object: ConfigObject | undefined, own: OwnStatus): void {
    const [kind = "", namespace = "", name = ""] = key.split("/");
    const type = this.#types.get(kind);
    const written = this.#written.get(key);
    // What is new since then the next look finds; asked for again it would be written again at once, also where that failed.
    if (this.#writing.has(key)) return;
    if (type === undefined || (written?.object === object && written?.text === JSON.stringify(own))) return;
    const isQueued = this.#wanted.has(key);
    this.#wanted.set(key, { type, name, namespace, object, own });
    // What failed is tried again by the queue, after longer and longer pauses.
    if (!isQueued) this.#queue.add(key);
  }

  #forget(key: string): void {
    this.#written.delete(key);
    this.#wanted.delete(key);
    this.#last.delete(key);
    this.#rivals.forget(key);
  }

  async #write(key: string): Promise<void> {
    const wanted = this.#wanted.get(key);
    if (wanted === undefined) return;
    this.#wanted.delete(key);
    // The next look asks for it again.
    if (this.#rivals.pauseMs(key) > 0) return;
    const { type, name, namespace, object, own } = wanted;
    this.#writing.add(key);
    try {
      const found = await this.#options.api.call({ path: pathOf(type, { name, namespace }) });
      this.#compare(key, found);
      const status = statusWith(found, own, new Date(this.#options.now()).toISOString());
      const path = pathOf(type, { name, namespace, subresource: "status" });
      // Conditions are replaced as a whole: what others wrote since they were read, such as the health of a machine, would be lost.
      const body = { metadata: { resourceVersion: found.metadata.resourceVersion }, status };
      if (status !== undefined) await this.#options.api.call({ method: "PATCH", path, body, contentType: MERGE_PATCH });
      if (own.conditions !== undefined) this.#last.set(key, conditionTexts(own.conditions));
    } catch (problem) {
      const status = problem instanceof ApiError ? problem.status : undefined;
      // The next look asks for it again.
      if (status === 409) return;
      if (status !== 404) {
        if (!this.#wanted.has(key)) this.#wanted.set(key, wanted);
        throw problem;
      }
    } finally {
      this.#writing.delete(key);
    }
    this.#written.set(key, { object, text: JSON.stringify(own) });
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

/** The status with our parts in it, beside those of others; undefined when it has them already. */
export function statusWith(found: RawObject, own: OwnStatus, now: string): object | undefined {
  const status = isRecord(found.status) ? found.status : {};
  const { generation } = found.metadata;
  const isObserved = Number(status.observedGeneration ?? 0) === (generation ?? 0);
  const { conditions: wanted, messages } = own;
  const isSaid = messages === undefined || messageTexts(messages) === messageTexts(status.validationMessages);
  const isShown = wanted === undefined || conditionTexts(ownConditions(found)) === conditionTexts(wanted);
  // Objects without a word about them are left alone.
  const isSilent = wanted === undefined && isSaid && messages?.length === 0;
  if (isSaid && isShown && (isObserved || isSilent)) return undefined;
  return {
    ...(wanted !== undefined && { conditions: joinedConditions(status, wanted, now) }),
    ...(messages !== undefined && { validationMessages: messages }),
    ...(generation !== undefined && { observedGeneration: generation }),
  };
}

/** Ours replace ours; the time of a change stays where nothing changed. */
function joinedConditions(status: object, conditions: readonly Condition[], now: string): readonly object[] {
  const before = allConditions(status);
  const own = before.filter(isOwn);
  const next = conditions.map((condition) => {
    const same = own.find(({ type, status: value }) => type === condition.type && value === condition.status);
    return { ...condition, lastTransitionTime: same?.lastTransitionTime ?? now, lastProbeTime: now };
  });
  return [...before.filter((each) => !isOwn(each)), ...next];
}

function statusMessage({ code }: Finding): StatusMessage {
  return { type: { code }, level: levelOf(code), documentationUrl: documentationUrl(code) };
}

function messageTexts(messages: unknown): string {
  const texts = (Array.isArray(messages) ? messages : [])
    .filter(isRecord)
    .map(({ type, level, documentationUrl: url }) => {
      return [isRecord(type) ? type.code : "", level, url].join();
    });
  return texts.join(" ");
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
