/** Services, as objects define them, before they have their addresses. */
import type { ConfigObject } from "#config/config-object.ts";
import type { EndpointSlice } from "#config/kinds/endpoint-slice.ts";
import type { Namespace } from "#config/kinds/namespace.ts";
import type { Node, NodeStatus } from "#config/kinds/node.ts";
import type { Pod, PodStatus } from "#config/kinds/pod.ts";
import type { ServiceEntry } from "#config/kinds/service-entry.ts";
import type { WorkloadEntry } from "#config/kinds/workload-entry.ts";
import type { MeshConfig } from "#config/mesh-config.ts";
import type { Steps } from "#lib/async/steps.ts";
import type { Features } from "#model/features.ts";
import { type Service, type ServiceKey, serviceKey } from "#model/service.ts";
import {
  isExternalName,
  isNodePortGateway,
  kubernetesService,
  type ServiceObject,
  throughNodes,
} from "./kubernetes-service.ts";
import { memoized } from "./memo.ts";
import { serviceEntryServices, wantsAutoAddress } from "./service-entry.ts";

/** The objects that define services and workloads, and what else these depend on. */
export interface DraftInput {
  readonly services: readonly ServiceObject[];
  readonly serviceEntries: readonly ConfigObject<ServiceEntry>[];
  readonly workloadEntries: readonly ConfigObject<WorkloadEntry>[];
  readonly slices: readonly ConfigObject<EndpointSlice>[];
  readonly pods: readonly ConfigObject<Pod, PodStatus>[];
  readonly nodes: readonly ConfigObject<Node, NodeStatus>[];
  readonly namespaces: readonly ConfigObject<Namespace>[];
  readonly mesh: MeshConfig;
  readonly features: Features;
  /** Somebody else makes EndpointSlices: a Service that has none has no pods. Otherwise it has those it selects. */
  readonly slicesGiven: boolean;
}

/** A service before it has its address. */
export interface ServiceDraft {
  readonly key: ServiceKey;
  readonly service: Service;
  /** Which kind of address it still needs. */
  readonly needs: "cluster-ip" | "auto-address" | undefined;
}

/** The services that the objects define. Those of objects that did not change are the same as the last time. */
export function* serviceDrafts(input: DraftInput): Steps<ServiceDraft[]> {
  const drafts: ServiceDraft[] = [];
  for (const object of input.services) {
    drafts.push(kubernetesDraft(object, input));
    yield;
  }
  for (const object of input.serviceEntries) {
    drafts.push(...entryDrafts(object, input.mesh));
    yield;
  }
  return drafts;
}

/** The draft of a Kubernetes Service. */
export function kubernetesDraft(object: ServiceObject, { nodes, mesh, features }: DraftInput): ServiceDraft {
  return draftOfService(object, isNodePortGateway(object) ? nodes : [], mesh, features.domain);
}

const draftOfService = memoized(
  (object: ServiceObject, nodes: DraftInput["nodes"], mesh: MeshConfig, domain: string): ServiceDraft => {
    const plain = kubernetesService(object, { mesh, domain });
    const service = isNodePortGateway(object) ? throughNodes(plain, object, nodes) : plain;
    const hasAddress = service.addresses.length > 0 || service.headless || isExternalName(object.spec);
    return { key: serviceKey(service), service, needs: hasAddress ? undefined : "cluster-ip" };
  },
);

/** The drafts of the hosts of a ServiceEntry. */
export const entryDrafts = memoized((object: ConfigObject<ServiceEntry>, mesh: MeshConfig): ServiceDraft[] =>
  serviceEntryServices(object, mesh).map((service) => {
    const wanted = wantsAutoAddress(object) && !service.hostname.startsWith("*");
    return { key: serviceKey(service), service, needs: wanted ? "auto-address" : undefined };
  }),
);
