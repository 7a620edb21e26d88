/** Ports of a workload that Services of Kubernetes lead to, by what they select: known before any endpoint tells of it. */
import { furtherService, type Service } from "#model/service/service.ts";
import type { KnownWorkload } from "#model/workload/workload.ts";
import { derived } from "../recipes/indexes.ts";
import type { ServiceTarget } from "./service-targets.ts";

/** A workload as far as Services look at it. Of one that no registry knows, its proxy tells. */
export interface Selectable extends Omit<KnownWorkload, "kind"> {
  readonly kind: KnownWorkload["kind"] | "unknown";
  readonly namespace: string;
  /** Services may be in others. Undefined for the one that holds the configuration. */
  readonly clusterId: string | undefined;
}

/**
 * What the Services that select a workload lead to. Ports that they name and the workload does not know are left out. A
 * proxy that lists its ports has to know all of them: else its list is not yet that of its pod.
 */
export function selectedTargets(services: readonly Service[], workload: Selectable): readonly ServiceTarget[] {
  const selecting = servicesSelecting(services, workload);
  const targets = selecting.flatMap((service) => targetsIn(service, workload));
  const isUnsure = workload.kind === "unknown" && Object.keys(workload.ports).length > 0;
  if (isUnsure && targets.some(({ targetPort }) => targetPort === 0)) return [];
  return targets.filter(({ targetPort }) => targetPort > 0);
}

/** With port 0 where it is not known. Two ports of one protocol that lead to one of a pod are one. */
function targetsIn(service: Service, workload: Selectable): readonly ServiceTarget[] {
  const isMachine = workload.kind === "machine";
  // As in Istio, machines are none of headless services.
  if (isMachine && service.resolution !== "static") return [];
  const known = new Set<string>();
  return service.ports.flatMap((port): ServiceTarget[] => {
    if (isMachine && port.protocol === "UDP") return [];
    const target = service.targetPorts?.[port.name] ?? port.port;
    const targetPort = workloadPort(workload, { name: port.name, target });
    const key = `${targetPort}/${port.protocol}`;
    if (!isMachine && targetPort > 0 && known.has(key)) return [];
    known.add(key);
    return [{ service, port, targetPort }];
  });
}

/** A number is a port of the workload, unless an entry has another for the name of the service's port. Names of entries are for all protocols. */
function workloadPort(
  { kind, ports }: Selectable,
  { name, target }: { readonly name: string; readonly target: number | string },
): number {
  const named = (key: string) => (Object.hasOwn(ports, key) && ports[key]) || 0;
  const isEntry = kind === "machine" || kind === "stand-in";
  if (typeof target === "string") return named(isEntry ? (target.split("/", 1)[0] ?? "") : target);
  return (isEntry && named(name)) || target;
}

function servicesSelecting(services: readonly Service[], workload: Selectable): readonly Service[] {
  const { namespace, labels, clusterId = "" } = workload;
  const index = byFirstLabel(clusterId, services);
  const candidates = Object.entries(labels).flatMap(([key, value]) => index.get(`${namespace}/${key}=${value}`) ?? []);
  return candidates.filter(({ selector = {} }) =>
    Object.entries(selector).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value),
  );
}

/** Services as a cluster defines them, by the first label that they select; those without any select nothing. */
const byFirstLabel = derived((clusterId: string, services: readonly Service[]) => {
  const index = new Map<string, Service[]>();
  for (const service of services) {
    const there = clusterId === "" ? service : furtherService(service, clusterId);
    const [first] = Object.entries(there?.selector ?? {});
    if (there === undefined || first === undefined || there.registry !== "Kubernetes") continue;
    if (clusterId === "" && service.isElsewhere) continue;
    const key = `${there.namespace}/${first[0]}=${first[1]}`;
    index.set(key, [...(index.get(key) ?? []), there]);
  }
  return index;
});
