/** Names of statistics by a pattern of the mesh config. */
import type { Service, ServicePort } from "#model/service/service.ts";

/** What the pattern can name. */
export interface StatNameInput {
  readonly service: Pick<Service, "hostname" | "name" | "namespace" | "registry">;
  readonly port: Pick<ServicePort, "port" | "name">;
  readonly subset: string;
  /** Statistics of listeners know none: there the place of it stays as it is. */
  readonly targetPort?: number;
  /** The name without a pattern. */
  readonly fallback: string;
}

/** Fills in the pattern; the short names are those of Kubernetes services. */
export function statName(pattern: string | undefined, input: StatNameInput): string {
  if (pattern === undefined || pattern === "") return input.fallback;
  const { service, port, subset, targetPort } = input;
  const { hostname, name, namespace } = service;
  const [short, shortest] = service.registry === "Kubernetes" ? [`${name}.${namespace}`, name] : [hostname, hostname];
  const filled = pattern
    .replaceAll("%SERVICE%", short)
    .replaceAll("%SERVICE_NAME%", shortest)
    .replaceAll("%SERVICE_FQDN%", hostname)
    .replaceAll("%SUBSET_NAME%", subset)
    .replaceAll("%TARGET_PORT%", targetPort === undefined ? "%TARGET_PORT%" : String(targetPort))
    .replaceAll("%SERVICE_PORT%", String(port.port))
    .replaceAll("%SERVICE_PORT_NAME%", port.name);
  return filled === "" ? input.fallback : filled;
}
