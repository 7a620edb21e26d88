/** Services that other configuration names. */
import type { Service } from "#model/service/service.ts";

/** `namespace/host`, or a host that only one namespace has. */
export function serviceNamed(services: readonly Service[], name: string): Service | undefined {
  const [namespace, hostname] = name.includes("/") ? name.split("/") : [undefined, name];
  const all = services.filter(
    (service) => service.hostname === hostname && (namespace === undefined || service.namespace === namespace),
  );
  return all.length === 1 ? all[0] : undefined;
}
