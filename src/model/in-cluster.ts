/** The mesh as it is seen from one of its clusters: a service has another address in each. */
import { keptBy } from "#lib/collections/kept-by.ts";
import { furtherService, type Service } from "./service/service.ts";
import type { Snapshot } from "./snapshot.ts";

const bySnapshot = new WeakMap<readonly Service[], Map<string, readonly Service[]>>();
const byService = new WeakMap<Service, Map<string, Service>>();
const wholeBy = new WeakMap<Snapshot, Map<string, Snapshot>>();

/** The snapshot itself where no service has other addresses there. What did not change keeps its identity. */
export function inCluster(snapshot: Snapshot, clusterId: string): Snapshot {
  return keptBy(wholeBy, snapshot, clusterId, () => {
    const services = keptBy(bySnapshot, snapshot.services, clusterId, () => servicesIn(snapshot.services, clusterId));
    return services === snapshot.services ? snapshot : { ...snapshot, services };
  });
}

function servicesIn(services: readonly Service[], clusterId: string): readonly Service[] {
  const seen = services.map((service) => keptBy(byService, service, clusterId, () => serviceIn(service, clusterId)));
  return seen.every((service, i) => service === services[i]) ? services : seen;
}

function serviceIn(service: Service, clusterId: string): Service {
  const own = furtherService(service, clusterId);
  const isSame = own === undefined || own.addresses.join() === service.addresses.join();
  return isSame ? service : { ...service, addresses: own.addresses };
}
