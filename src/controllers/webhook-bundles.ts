/**
 * Keeps our certificate's roots in the webhook configurations of this revision: without them the API server would not
 * believe the webhooks, and with old ones it would refuse every pod. Once the API server was seen to heed validation, nothing
 * is stored without it; before, validation that cannot be reached would hold up everything.
 */
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { ApiError, JSON_PATCH, type KubernetesApi, type RawObject } from "#lib/kubernetes/api-client.ts";
import { type Follower, follow } from "#lib/kubernetes/follow.ts";
import { refusalText } from "#lib/kubernetes/missing-right.ts";
import { pathOf, type ResourceType } from "#lib/kubernetes/resource-types.ts";
import type { Logger } from "#lib/log/log.ts";
import type { MetricDefinition } from "#lib/metrics/metrics.ts";
import { Rivals } from "./rivals.ts";
import { ValidationProof } from "./validation-proof.ts";
import { WorkQueue } from "./work-queue.ts";

export interface WebhookBundlesOptions {
  readonly api: KubernetesApi;
  /** PEM of what signs our certificate now. */
  readonly roots: () => string;
  /** Calls when that has changed; gives the way to stop. */
  readonly onRoots: (changed: () => void) => () => void;
  /** Configurations of other revisions are others'. */
  readonly revision: string;
  /** Of the control plane. */
  readonly namespace: string;
  /** Which are kept; both when not given. Configuration is validated in one cluster alone. */
  readonly only?: { readonly injection: boolean; readonly validation: boolean };
  readonly count?: (counter: WebhookBundleCounter, labels: Readonly<Record<string, string>>) => void;
  readonly log: Logger;
}

/** What is counted, under Istio's names: the first three of injection, the others of validation. */
export const WEBHOOK_BUNDLE_COUNTERS = {
  webhook_patch_attempts_total: counter("Webhooks of injection that were to be put right", "name"),
  webhook_patch_retries_total: counter("Tries to put webhooks of injection right after one that failed", "name"),
  webhook_patch_failures_total: counter("Webhooks of injection that could not be put right", "name", "reason"),
  galley_validation_config_updates: counter("Webhooks of validation that were put right"),
  galley_validation_config_update_error: counter("Webhooks of validation that could not be put right", "reason"),
};
export type WebhookBundleCounter = keyof typeof WEBHOOK_BUNDLE_COUNTERS;

function counter(help: string, ...labels: string[]): MetricDefinition {
  return { type: "counter", help, labels };
}

const GROUP = { group: "admissionregistration.k8s.io", version: "v1", namespaced: false };
const INJECTION = { ...GROUP, kind: "MutatingWebhookConfiguration", plural: "mutatingwebhookconfigurations" };
const VALIDATION = { ...GROUP, kind: "ValidatingWebhookConfiguration", plural: "validatingwebhookconfigurations" };
const RETRY = { initialMs: 200, maxMs: 10_000 };
/** Of all webhooks that lead to a control plane of this API. */
const OURS = /\.istio\.io$/;

/** Writes until the signal aborts. Only one replica may do this at a time. */
export async function keepWebhookBundles(options: WebhookBundlesOptions, signal: AbortSignal): Promise<void> {
  const { injection, validation } = options.only ?? { injection: true, validation: true };
  const types = [...(injection ? [INJECTION] : []), ...(validation ? [VALIDATION] : [])];
  await Promise.all(types.map((type) => keepType(type, options, signal)));
}

async function keepType(type: ResourceType, options: WebhookBundlesOptions, signal: AbortSignal): Promise<void> {
  const { api, revision, log } = options;
  const known = new Map<string, RawObject>();
  const rivals = new Rivals(() => performance.now());
  const proof = new ValidationProof(options);
  const putRightInTime = async (name: string) => {
    const object = known.get(name);
    if (object === undefined) return;
    const changes = changesOf(object, options.roots(), { mayRefuse: proof.isGiven });
    if (changes.length === 0) {
      // The API server believes us: does it ask us, too? What was seen holds for all.
      if (changesOf(object, options.roots(), { mayRefuse: true }).length === 0) return;
      if (await proof.look()) for (const each of known.keys()) queue.add(each);
      else void sleep(proof.pauseMs(), signal).then(() => queue.add(name));
      return;
    }
    const pause = rivals.pauseMs(name);
    if (pause > 0) {
      log.warn("somebody else keeps writing other roots: is there a second control plane?", { name });
      void sleep(pause, signal).then(() => queue.add(name));
      return;
    }
    await putRight(object, changes, { type, options });
    if (type === VALIDATION) options.count?.("galley_validation_config_updates", {});
    rivals.wrote(name);
  };
  const queue = new WorkQueue({
    work: putRightInTime,
    failed: (name, problem) => {
      countFailure(name, problem, { type, options });
      log.warn("a webhook cannot be put right", { name, reason: refusalText(problem) });
    },
  });
  const take = (object: RawObject) => {
    known.set(object.metadata.name, object);
    queue.add(object.metadata.name);
  };
  const follower: Follower = {
    replace: async (objects) => {
      known.clear();
      for (const object of objects) take(object);
    },
    put: take,
    remove: ({ metadata: { name } }) => {
      known.delete(name);
      rivals.forget(name);
    },
    trouble: (problem) => {
      if (problem !== undefined) log.warn(`${type.plural} cannot be read`, { reason: refusalText(problem) });
    },
  };
  const stop = options.onRoots(() => {
    for (const name of known.keys()) queue.add(name);
  });
  const labelSelector = `istio.io/rev=${revision}`;
  await follow({ api, type, labelSelector, follower, backoff: new Backoff(RETRY), signal });
  stop();
  await queue.stop();
}

function countFailure(
  name: string,
  problem: unknown,
  { type, options: { count } }: { readonly type: ResourceType; readonly options: WebhookBundlesOptions },
): void {
  if (type === VALIDATION) {
    const reason = problem instanceof ApiError ? problem.reason : "Unknown";
    count?.("galley_validation_config_update_error", { reason });
    return;
  }
  count?.("webhook_patch_failures_total", { name, reason: "webhook_update_failure" });
  count?.("webhook_patch_retries_total", { name }); // the queue tries again
}

async function putRight(
  object: RawObject,
  body: readonly object[],
  { type, options: { api, count } }: { readonly type: ResourceType; readonly options: WebhookBundlesOptions },
): Promise<void> {
  if (type === INJECTION) {
    for (const name of ourWebhooks(object)) count?.("webhook_patch_attempts_total", { name });
  }
  // Only if nobody changed it meanwhile: the places of webhooks in the list would be others.
  const unchanged = { op: "test", path: "/metadata/resourceVersion", value: object.metadata.resourceVersion };
  const path = pathOf(type, { name: object.metadata.name });
  try {
    await api.call({ method: "PATCH", path, body: [unchanged, ...body], contentType: JSON_PATCH });
  } catch (problem) {
    if (!(problem instanceof ApiError) || ![404, 409, 422].includes(problem.status)) throw problem;
  }
}

function ourWebhooks({ webhooks }: RawObject): readonly string[] {
  const names = (Array.isArray(webhooks) ? webhooks : []).map((webhook: unknown) => String(Object(webhook).name));
  return names.filter((name) => OURS.test(name));
}

/** What has to be changed in a configuration, as a JSON patch. `mayRefuse`: validation was seen to work. */
function changesOf(
  { kind, webhooks }: RawObject,
  roots: string,
  { mayRefuse }: { readonly mayRefuse: boolean },
): readonly object[] {
  const caBundle = Buffer.from(roots).toString("base64");
  return (Array.isArray(webhooks) ? webhooks : []).flatMap((webhook: unknown, i) => {
    if (!isRecord(webhook) || !OURS.test(String(webhook.name))) return [];
    const has = isRecord(webhook.clientConfig) ? webhook.clientConfig.caBundle : undefined;
    const bundle =
      has === caBundle ? [] : [{ op: "add", path: `/webhooks/${i}/clientConfig/caBundle`, value: caBundle }];
    const isToRefuse = mayRefuse && kind === VALIDATION.kind && webhook.failurePolicy !== "Fail";
    return isToRefuse ? [...bundle, { op: "add", path: `/webhooks/${i}/failurePolicy`, value: "Fail" }] : bundle;
  });
}
