/** Objects that select workloads: Sidecars, DestinationRules and AuthorizationPolicies. */

import { authorizationPolicyKind } from "#config/kinds/authorization-policy/kind.ts";
import { destinationRuleKind } from "#config/kinds/destination-rule/kind.ts";
import { nodeKind } from "#config/kinds/node/kind.ts";
import type { Pod } from "#config/kinds/pod/schema.ts";
import { sidecarKind } from "#config/kinds/sidecar/kind.ts";
import type { Sidecar } from "#config/kinds/sidecar/schema.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import {
  HOSTNAME_LABEL,
  OLD_REGION_LABEL,
  OLD_ZONE_LABEL,
  REGION_LABEL,
  SUBZONE_LABEL,
  ZONE_LABEL,
} from "#config/terms/topology-labels.ts";
import { hasLabels } from "#model/labels/labels.ts";
import { fullName, type MeshObjects } from "./mesh-objects.ts";
import type { Findings } from "./message.ts";

const INJECT = "sidecar.istio.io/inject";
const PROXY = "istio-proxy";
const TOPOLOGY = [
  [REGION_LABEL, OLD_REGION_LABEL],
  [ZONE_LABEL, OLD_ZONE_LABEL],
  [SUBZONE_LABEL, SUBZONE_LABEL],
] as const;

/** Sidecars without pods, and pods or namespaces with several. */
export function* sidecarFindings(mesh: MeshObjects): Findings {
  const sidecars = mesh.ofKind(sidecarKind);
  const hasSelector = ({ spec }: ConfigObject<Sidecar>) => Object.keys(spec.workloadSelector?.labels ?? {}).length > 0;
  const byPod = new Map<ConfigObject<Pod>, ConfigObject<Sidecar>[]>();
  for (const sidecar of sidecars.filter(hasSelector)) {
    yield undefined;
    const pods = mesh.podsWith(sidecar.spec.workloadSelector?.labels, sidecar.metadata.namespace);
    if (pods.length === 0)
      yield { object: objectKey(sidecar), code: "IST0101", text: "no pod has the labels of its workloadSelector" };
    for (const pod of pods) byPod.set(pod, [...(byPod.get(pod) ?? []), sidecar]);
  }
  for (const [pod, rivals] of byPod) {
    if (rivals.length < 2) continue;
    const text = `pod "${pod.metadata.name}" is selected by ${rivals.map(fullName).sort().join(", ")}`;
    for (const sidecar of rivals) yield { object: objectKey(sidecar), code: "IST0110", text };
  }
  const whole = Map.groupBy(
    sidecars.filter((sidecar) => !hasSelector(sidecar)),
    ({ metadata }) => metadata.namespace,
  );
  for (const rivals of whole.values()) {
    if (rivals.length < 2) continue;
    const text = `its namespace has several without workloadSelector: ${rivals.map(fullName).sort().join(", ")}`;
    for (const sidecar of rivals) yield { object: objectKey(sidecar), code: "IST0111", text };
  }
}

/** DestinationRules for nobody, subsets without pods, and TLS to servers that are not verified. */
export function* destinationRuleFindings(mesh: MeshObjects): Findings {
  const located = locatedPods(mesh);
  for (const rule of mesh.ofKind(destinationRuleKind)) {
    yield undefined;
    const object = objectKey(rule);
    const { host, exportTo, subsets = [], trafficPolicy: policy, workloadSelector } = rule.spec;
    const isUnverified = (tls: NonNullable<typeof policy>["tls"]) =>
      (tls?.mode === "SIMPLE" || tls?.mode === "MUTUAL") &&
      (tls.caCertificates ?? "") === "" &&
      !((tls.credentialName ?? "") !== "" && workloadSelector !== undefined);
    if (isUnverified(policy?.tls))
      yield { object, code: "IST0128", text: "servers are not verified: caCertificates is not set" };
    for (const { port, tls } of policy?.portLevelSettings ?? [])
      if (isUnverified(tls))
        yield { object, code: "IST0129", text: `servers are not verified at port ${port?.number}: no caCertificates` };
    const known = mesh.hosts.find(host, rule.metadata.namespace, exportTo);
    if (known === undefined) {
      yield { object, code: "IST0174", text: `host "${host}" does not exist` };
      continue;
    }
    for (const { name, labels = {} } of subsets)
      if (!located.some((pod) => hasLabels(pod, { ...known.selector, ...labels })))
        yield { object, code: "IST0173", text: `no pod is of subset "${name}"` };
  }
}

/** Labels of all pods, with those that their nodes give them. A node with an empty label is in no place. */
function locatedPods(mesh: MeshObjects): readonly Readonly<Record<string, string>>[] {
  const nodes = new Map(mesh.ofKind(nodeKind).map(({ metadata }) => [metadata.name, metadata.labels]));
  return mesh.pods.map(({ metadata, spec }) => {
    const { nodeName = "" } = spec;
    const node = nodes.get(nodeName) ?? {};
    const places = TOPOLOGY.flatMap(([label, old]) => {
      const value = node[label] || node[old];
      return value ? [[label, value] as const] : [];
    });
    return {
      ...metadata.labels,
      ...Object.fromEntries(places),
      ...(nodeName !== "" && { [HOSTNAME_LABEL]: nodeName }),
    };
  });
}

/** AuthorizationPolicies for nobody, or that name namespaces which are not there. */
export function* policyFindings(mesh: MeshObjects): Findings {
  const injected = new Map(mesh.namespaces.map(({ metadata }) => [metadata.name, metadata.labels["istio-injection"]]));
  const members = mesh.pods.filter((pod) => isInMesh(pod, injected.get(pod.metadata.namespace)));
  for (const policy of mesh.ofKind(authorizationPolicyKind)) {
    yield undefined;
    const object = objectKey(policy);
    const { namespace } = policy.metadata;
    const isMeshWide = namespace === mesh.mesh.rootNamespace;
    const { selector, rules = [] } = policy.spec;
    const fits = ({ metadata }: ConfigObject) =>
      (isMeshWide || metadata.namespace === namespace) && hasLabels(metadata.labels, selector?.matchLabels);
    if ((selector !== undefined || !isMeshWide) && !members.some(fits))
      yield { object, code: "IST0127", text: "no pod of the mesh is selected" };
    const sources = rules.flatMap(({ from = [] }) => from.flatMap(({ source }) => source ?? []));
    for (const named of sources.flatMap(({ namespaces = [], notNamespaces = [] }) => [...namespaces, ...notNamespaces]))
      if (!mesh.namespaces.some(({ metadata }) => isNamed(metadata.name, named)))
        yield { object, code: "IST0101", text: `namespace "${named}" does not exist` };
  }
}

function isInMesh({ metadata, spec }: ConfigObject<Pod>, injection: string | undefined): boolean {
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  if (containers.some(({ name }) => name === PROXY)) return true;
  const wish = metadata.labels[INJECT] ?? metadata.annotations[INJECT];
  return wish === undefined ? injection === "enabled" : wish === "true";
}

function isNamed(namespace: string, pattern: string): boolean {
  const [name, wanted] = [namespace.toLowerCase(), pattern.toLowerCase()];
  if (wanted.startsWith("*")) return name.endsWith(wanted.slice(1));
  return wanted.endsWith("*") ? name.startsWith(wanted.slice(0, -1)) : name === wanted;
}
