/** The pod that a person means by `[TYPE/]NAME[.NAMESPACE]`: itself, or one of those that an object selects. */
import { isRecord } from "#lib/json/is-record.ts";
import type { KubernetesApi, RawObject } from "#lib/kubernetes/api-client.ts";
import { pathOf, type ResourceType } from "#lib/kubernetes/resource-types.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { type LabelSelector, matchesSelector } from "#model/labels/label-selector.ts";

type Api = Pick<KubernetesApi, "call">;

const POD = { group: "", version: "v1", kind: "Pod", plural: "pods", namespaced: true };

/** Kinds that select pods, with the short names that kubectl has for them. */
const SELECTING: readonly (ResourceType & { readonly short: string })[] = [
  { ...POD, kind: "Service", plural: "services", short: "svc" },
  { ...POD, kind: "ReplicationController", plural: "replicationcontrollers", short: "rc" },
  ...(
    [
      ["Deployment", "deploy"],
      ["ReplicaSet", "rs"],
      ["StatefulSet", "sts"],
      ["DaemonSet", "ds"],
    ] as const
  ).map(([kind, short]) => ({ ...POD, group: "apps", kind, plural: `${kind.toLowerCase()}s`, short })),
  { ...POD, group: "batch", kind: "Job", plural: "jobs", short: "job" },
];

/** Throws a MeshError when there is none. `namespace` is for names that have none. */
export async function namedPod(api: Api, name: string, namespace: string): Promise<RawObject> {
  const slash = name.lastIndexOf("/");
  const [type, full] = [name.slice(0, Math.max(slash, 0)), name.slice(slash + 1)];
  const dot = full.lastIndexOf(".");
  const place =
    dot < 0 ? { name: full, namespace } : { name: full.slice(0, dot), namespace: full.slice(dot + 1) || namespace };
  if (["", "po", "pod", "pods"].includes(type.toLowerCase())) return api.call({ path: pathOf(POD, place) });
  const known = SELECTING.find((one) => namesOf(one).includes(type.toLowerCase()));
  if (known === undefined) throw unknown(`"${name}": "${type}" is no kind that selects pods`);
  const selector = selectorOf(await api.call({ path: pathOf(known, place) }), known);
  if (selector === undefined) throw unknown(`"${name}" does not refer to a pod: it has no selector`);
  const path = pathOf(POD, { namespace: place.namespace });
  const { items } = await api.call<{ readonly items: readonly RawObject[] }>({ path });
  const [first] = items
    .filter(({ metadata }) => matchesSelector(selector, metadata.labels ?? {}) === true)
    .sort((a, b) => rank(b) - rank(a));
  if (first === undefined) throw unknown(`no pods match "${name}"`);
  return first;
}

function namesOf({ kind, plural, group, short }: (typeof SELECTING)[number]): readonly string[] {
  return [kind.toLowerCase(), plural, short, `${plural}.${group}`, `${kind.toLowerCase()}.${group}`];
}

function selectorOf({ spec }: RawObject, { group }: ResourceType): LabelSelector | undefined {
  const selector = isRecord(spec) ? spec.selector : undefined;
  if (!isRecord(selector) || Object.keys(selector).length === 0) return undefined;
  return group === "" ? { matchLabels: selector as Readonly<Record<string, string>> } : selector;
}

/** Pods that run come first, and of these the ones that are ready. */
function rank({ status }: RawObject): number {
  if (!isRecord(status)) return 0;
  const conditions = Array.isArray(status.conditions) ? status.conditions.filter(isRecord) : [];
  const isReady = conditions.some((one) => one.type === "Ready" && one.status === "True");
  return (status.phase === "Running" ? 2 : 0) + (isReady ? 1 : 0);
}

function unknown(message: string): MeshError {
  return new MeshError("POD_UNKNOWN", message);
}
