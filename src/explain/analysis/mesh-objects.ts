/** The objects of a mesh as analysers look at them. */

import type { Namespace } from "#config/kinds/namespace/schema.ts";
import type { Pod } from "#config/kinds/pod/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { hasLabels } from "#model/labels/labels.ts";
import { type KnownHosts, knownHosts } from "./known-hosts.ts";

/** What is analysed. */
export interface MeshObjects {
  readonly mesh: MeshConfig;
  readonly hosts: KnownHosts;
  readonly pods: readonly ConfigObject<Pod>[];
  readonly namespaces: readonly ConfigObject<Namespace>[];
  ofKind<Spec, Status = unknown>(kind: string): readonly ConfigObject<Spec, Status>[];
  /** Pods that have these labels, in a namespace or in all of them. */
  podsWith(labels: Readonly<Record<string, string>> | undefined, namespace?: string): readonly ConfigObject<Pod>[];
}

/** Sorts the objects of a mesh. */
export function meshObjects(objects: readonly ConfigObject[], mesh: MeshConfig): MeshObjects {
  const byKind = Map.groupBy(objects, ({ kind }) => kind);
  const ofKind = <Spec, Status>(kind: string) => (byKind.get(kind) ?? []) as ConfigObject<Spec, Status>[];
  const pods = ofKind<Pod, unknown>("Pod");
  return {
    mesh,
    pods,
    namespaces: ofKind<Namespace, unknown>("Namespace"),
    ofKind,
    hosts: knownHosts(ofKind("ServiceEntry"), ofKind("Service")),
    podsWith: (labels, namespace) =>
      pods.filter(
        ({ metadata }) =>
          (namespace === undefined || metadata.namespace === namespace) && hasLabels(metadata.labels, labels),
      ),
  };
}

/** `namespace/name`, as objects refer to one another. */
export function fullName({ metadata }: ConfigObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}
