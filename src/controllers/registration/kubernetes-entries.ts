/** WorkloadEntries of workloads that registered themselves, in the API server. */
import { resourceTypeOf } from "#config/kinds/kind.ts";
import { workloadEntryKind } from "#config/kinds/workload-entry/kind.ts";
import { workloadGroupKind } from "#config/kinds/workload-group/kind.ts";
import { ApiError, type KubernetesApi, MERGE_PATCH } from "#lib/kubernetes/api-client.ts";
import { apiVersionOf, pathOf } from "#lib/kubernetes/resource-types.ts";
import type { WorkloadEntries } from "#model/ports.ts";
import type { EntryObject } from "./registered-entry.ts";

const ENTRIES = resourceTypeOf(workloadEntryKind);
const GROUPS = resourceTypeOf(workloadGroupKind);

/** Writes entries through the API. Only annotations and status of entries that exist are changed. */
export function kubernetesEntries(api: Pick<KubernetesApi, "call">): WorkloadEntries {
  return {
    put: async (entry, before) => {
      if (before === undefined) await create(api, entry);
      else await annotate(api, entry, before);
      if (entry.status !== before?.status && entry.status !== undefined) {
        const path = pathOf(ENTRIES, { ...placeOf(entry), subresource: "status" });
        await api.call({ method: "PATCH", path, contentType: MERGE_PATCH, body: { status: entry.status } });
      }
    },
    remove: async (entry) => {
      await ignoring(404, api.call({ method: "DELETE", path: pathOf(ENTRIES, placeOf(entry)) }));
    },
  };
}

async function create(api: Pick<KubernetesApi, "call">, entry: EntryObject): Promise<void> {
  const { name, namespace, labels, annotations, controller } = entry.metadata;
  // With its group the entry goes too.
  const ownerReferences = controller && [await ownerOf(api, controller.name, namespace)];
  const metadata = { name, namespace, labels, annotations, ownerReferences };
  const body = { apiVersion: apiVersionOf(ENTRIES), kind: ENTRIES.kind, metadata, spec: entry.spec };
  // One that exists already was seen by nobody yet: the next event of its workload finds it.
  await ignoring(409, api.call({ method: "POST", path: pathOf(ENTRIES, { namespace }), body }));
}

async function annotate(api: Pick<KubernetesApi, "call">, entry: EntryObject, before: EntryObject): Promise<void> {
  const { annotations } = entry.metadata;
  const gone = Object.keys(before.metadata.annotations).filter((name) => !Object.hasOwn(annotations, name));
  const changes = Object.entries(annotations).filter(([name, value]) => before.metadata.annotations[name] !== value);
  if (gone.length + changes.length === 0) return;
  const body = { metadata: { annotations: Object.fromEntries([...changes, ...gone.map((name) => [name, null])]) } };
  await api.call({ method: "PATCH", path: pathOf(ENTRIES, placeOf(entry)), contentType: MERGE_PATCH, body });
}

async function ownerOf(api: Pick<KubernetesApi, "call">, name: string, namespace: string): Promise<object> {
  const { metadata } = await api.call({ path: pathOf(GROUPS, { namespace, name }) });
  return { apiVersion: apiVersionOf(GROUPS), kind: GROUPS.kind, name, uid: metadata.uid, controller: true };
}

function placeOf({ metadata: { name, namespace } }: EntryObject): { name: string; namespace: string } {
  return { name, namespace };
}

async function ignoring(code: number, call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (thrown) {
    if (!(thrown instanceof ApiError) || thrown.status !== code) throw thrown;
  }
}
