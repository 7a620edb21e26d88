/** Services, as objects define them, before they have their addresses. */

import type { EndpointSlice } from "#config/kinds/endpoint-slice/schema.ts";
import type { Namespace } from "#config/kinds/namespace/schema.ts";
import type { Node, NodeStatus } from "#config/kinds/node/schema.ts";
import type { Pod, PodStatus } from "#config/kinds/pod/schema.ts";
import type { WorkloadEntry } from "#config/kinds/workload-entry/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { isWildcard } from "#config/terms/host.ts";
import { ITEMS_PER_STEP, type Steps } from "#lib/async/steps.ts";
import type { Features } from "#model/features.ts";
import { type Service, type ServiceKey, serviceKey } from "#model/service/service.ts";
import { keepIdentity } from "../identity/keep-identity.ts";
import { memoized, memoizedSteps } from "../identity/memo.ts";
import {
  isExternalName,
  isNodePortGateway,
  kubernetesService,
  type ServiceFeatures,
  type ServiceObject,
  throughNodes,
} from "./kubernetes-service.ts";
import { type ServiceEntryObject, serviceEntryServices, wantsAutoAddress, withAllocated } from "./service-entry.ts";

/** The objects that define services and workloads, and what else these depend on. */
export interface DraftInput {
  readonly services: readonly ServiceObject[];
  readonly serviceEntries: readonly ServiceEntryObject[];
  readonly workloadEntries: readonly ConfigObject<WorkloadEntry>[];
  readonly slices: readonly ConfigObject<EndpointSlice>[];
  readonly pods: readonly ConfigObject<Pod, PodStatus>[];
  readonly nodes: readonly ConfigObject<Node, NodeStatus>[];
  readonly namespaces: readonly ConfigObject<Namespace>[];
  readonly mesh: MeshConfig;
  readonly features: Features;
  /**
   * Controllers beside an API server make EndpointSlices and addresses. Otherwise Services have the pods they select, and
   * hosts without address get one here.
   */
  readonly byApiServer: boolean;
  /** Of a cluster beside the one that holds the configuration. */
  readonly isRemote?: true;
}

/** A service before it has its address. */
export interface ServiceDraft {
  readonly key: ServiceKey;
  readonly service: Service;
  /** Which kind of address it still needs. */
  readonly needs: "cluster-ip" | "auto-address" | "hash-address" | undefined;
}

/** The services that the objects define. Those of objects that did not change are the same as the last time. */
export function serviceDrafts(input: DraftInput): Steps<readonly ServiceDraft[]> {
  const { features, services, serviceEntries, nodes, mesh, byApiServer } = input;
  return allDrafts(features, services, serviceEntries, nodes, mesh, byApiServer);
}

const allDrafts = memoizedSteps(function* (
  features: Features,
  services: DraftInput["services"],
  serviceEntries: DraftInput["serviceEntries"],
  nodes: DraftInput["nodes"],
  mesh: MeshConfig,
  byApiServer: boolean,
): Steps<readonly ServiceDraft[]> {
  const drafts: ServiceDraft[] = [];
  const input = { nodes, mesh, features, byApiServer };
  let count = 0;
  for (const object of services) {
    if (count++ % ITEMS_PER_STEP === 0) yield;
    drafts.push(kubernetesDraft(object, input));
  }
  for (const object of serviceEntries) {
    if (count++ % ITEMS_PER_STEP === 0) yield;
    drafts.push(...entryDrafts(object, input));
  }
  return drafts;
});

/** The draft of a Kubernetes Service. */
export function kubernetesDraft(
  object: ServiceObject,
  { nodes, mesh, features }: Pick<DraftInput, "nodes" | "mesh" | "features">,
): ServiceDraft {
  return draftOfService(object, isNodePortGateway(object) ? nodes : [], mesh, serviceFeatures(features));
}

const draftOfService = memoized(
  (object: ServiceObject, nodes: DraftInput["nodes"], mesh: MeshConfig, features: ServiceFeatures): ServiceDraft => {
    const plain = kubernetesService(object, { mesh, features });
    const service = isNodePortGateway(object) ? throughNodes(plain, object, nodes) : plain;
    const hasAddress = service.addresses.length > 0 || service.headless || isExternalName(object.spec);
    return { key: serviceKey(service), service, needs: hasAddress ? undefined : "cluster-ip" };
  },
);

/** Who gives addresses to hosts without one: a controller writes them into the status, or we do, in one way or another. */
export type Allocation = "status" | "own" | "hash";

/** The part of the switches by which drafts are kept: one value for all clusters, which differ in others. */
const serviceFeatures = memoized((features: Features): ServiceFeatures => {
  const { domain, sendUnhealthy, sessionCookieLabel, sessionHeaderLabel, canonicalExternal } = features;
  const own = { domain, sendUnhealthy, sessionCookieLabel, sessionHeaderLabel, canonicalExternal };
  lastFeatures = keepIdentity(lastFeatures, own);
  return lastFeatures;
});
let lastFeatures: ServiceFeatures | undefined;

/** How hosts get addresses. */
function allocationOf({ features, byApiServer }: Pick<DraftInput, "features" | "byApiServer">): Allocation {
  if (!features.autoAllocate) return "hash";
  return byApiServer ? "status" : "own";
}

/** The drafts of the hosts of a ServiceEntry. */
export function entryDrafts(
  object: ServiceEntryObject,
  input: Pick<DraftInput, "mesh" | "features" | "byApiServer">,
): readonly ServiceDraft[] {
  return draftsOfEntry(object, input.mesh, serviceFeatures(input.features), allocationOf(input));
}

const draftsOfEntry = memoized(
  (object: ServiceEntryObject, mesh: MeshConfig, features: ServiceFeatures, allocation: Allocation): ServiceDraft[] =>
    serviceEntryServices(object, { mesh, features }).map((plain) => {
      const service = allocation === "hash" ? plain : withAllocated(plain, object);
      return { key: serviceKey(service), service, needs: addressNeeded(object, service, allocation) };
    }),
);

function addressNeeded(object: ServiceEntryObject, service: Service, allocation: Allocation): ServiceDraft["needs"] {
  const { addresses, resolution, hostname, autoAddress } = service;
  if (addresses.length > 0 || resolution === "passthrough" || isWildcard(hostname)) return undefined;
  if (allocation === "hash") return "hash-address";
  return allocation === "own" && autoAddress === undefined && wantsAutoAddress(object) ? "auto-address" : undefined;
}
