/**
 * Injection: a pod, the templates it asks for, and what templates cannot do:
 *
 *   annotations checked -> templates rendered and merged -> containers of users over them -> cluster and network
 *   -> metrics merged -> probes turned -> status -> containers in order
 */

import { NETWORK_LABEL } from "#config/terms/topology-labels.ts";
import type { InjectionRequest } from "./injection-request.ts";
import { withAnnotation } from "./mesh/proxy-config.ts";
import { withOverrides } from "./overrides.ts";
import { withOrderedContainers } from "./pod/container-order.ts";
import { PROXY_CONFIG, STATUS } from "./pod/names.ts";
import {
  annotationOf,
  type Container,
  findContainer,
  mapContainers,
  type Pod,
  PROXY_CONTAINER,
  readPod,
} from "./pod/pod.ts";
import { withRewrittenProbes } from "./probes.ts";
import { withMergedMetrics } from "./prometheus.ts";
import { formatStatus } from "./reinjection.ts";
import { runTemplates } from "./run-templates.ts";

const CLUSTER_VARIABLE = "ISTIO_META_CLUSTER_ID";
const NETWORK_VARIABLE = "ISTIO_META_NETWORK";

/** The pod with its proxy. Throws an `InjectionError`. */
export function injectPod(request: InjectionRequest): Pod {
  const { pod, injector } = request;
  const { mesh, values } = injector;
  const environment = placeOf(request);
  const result = runTemplates(request);
  const steps: readonly ((pod: Pod) => Pod)[] = [
    (merged) => withPlace(merged, environment),
    (merged) => withMergedMetrics(merged, mesh),
    (merged) => withRewrittenProbes(merged, { statusPort: mesh.statusPort, rewritesProbes: values.rewritesProbes }),
    (merged) => withMetadata(merged, { rendered: result.rendered, environment, request }),
    (merged) => withOrderedContainers(merged, values.holdsApplication || holdsByConfig(pod, request)),
  ];
  return readPod(steps.reduce((merged, step) => step(merged), withOverrides(result, request)));
}

/** Cluster and network: the path of the webhook counts more than the values, a label on the pod most. */
function placeOf({ pod, injector: { values }, proxyEnvironment }: InjectionRequest): Readonly<Record<string, string>> {
  const cluster = proxyEnvironment[CLUSTER_VARIABLE] || values.clusterName;
  const network = pod.metadata.labels?.[NETWORK_LABEL] ?? (proxyEnvironment[NETWORK_VARIABLE] || values.network);
  return {
    ...proxyEnvironment,
    ...(cluster === "" ? {} : { [CLUSTER_VARIABLE]: cluster }),
    ...(network === "" ? {} : { [NETWORK_VARIABLE]: network }),
  };
}

function withPlace(pod: Pod, environment: Readonly<Record<string, string>>): Pod {
  const added = Object.entries(environment)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => ({ name, value }));
  if (added.length === 0) return pod;
  const change = (container: Container): Container => ({
    ...container,
    env: [...(container.env ?? []).filter(({ name }) => !Object.hasOwn(environment, name)), ...added],
  });
  const proxy = findContainer(pod, PROXY_CONTAINER);
  return mapContainers(pod, (container) => (container === proxy ? change(container) : container));
}

interface MetadataInput {
  readonly rendered: Pod;
  readonly environment: Readonly<Record<string, string>>;
  readonly request: InjectionRequest;
}

function withMetadata(pod: Pod, { rendered, environment, request }: MetadataInput): Pod {
  const { revision, injectedAnnotations } = request.injector;
  const network = environment[NETWORK_VARIABLE];
  const { labels = {}, annotations = {} } = pod.metadata;
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      labels: network === undefined ? labels : { ...labels, [NETWORK_LABEL]: network },
      annotations: { ...annotations, [STATUS]: formatStatus(rendered.spec, revision), ...injectedAnnotations },
    },
  };
}

/** Of the mesh and the pod's annotation alone: ProxyConfig objects have no such field. */
function holdsByConfig(pod: Pod, { injector: { mesh } }: InjectionRequest): boolean {
  const config = withAnnotation(mesh.defaultConfig, annotationOf(pod, PROXY_CONFIG));
  return config.holdApplicationUntilProxyStarts === true;
}
