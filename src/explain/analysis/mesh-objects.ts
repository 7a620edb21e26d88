/** The objects of a mesh as analysers look at them. */

import { type Kind, objectsOfKind } from "#config/kinds/kind.ts";
import { namespaceKind } from "#config/kinds/namespace/kind.ts";
import type { Namespace } from "#config/kinds/namespace/schema.ts";
import { podKind } from "#config/kinds/pod/kind.ts";
import type { Pod } from "#config/kinds/pod/schema.ts";
import { serviceKind } from "#config/kinds/service/kind.ts";
import { serviceEntryKind } from "#config/kinds/service-entry/kind.ts";
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
  ofKind<Spec, Status>(kind: Kind<Spec, Status>): readonly ConfigObject<Spec, Status>[];
  /** Pods that have these labels, in a namespace or in all of them. */
  podsWith(labels: Readonly<Record<string, string>> | undefined, namespace?: string): readonly ConfigObject<Pod>[];
}

/** Sorts the objects of a mesh. */
export function meshObjects(objects: readonly ConfigObject[], mesh: MeshConfig): MeshObjects {
  const ofKind = objectsOfKind(Map.groupBy(objects, ({ kind }) => kind));
  const pods = ofKind(podKind);
  return {
    mesh,
    pods,
    namespaces: ofKind(namespaceKind),
    ofKind,
    hosts: knownHosts(ofKind(serviceEntryKind), ofKind(serviceKind)),
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
