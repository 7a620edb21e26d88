/** Services of the mesh that serve credentials, `sds://NAME`. */
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { Service } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { outboundCluster } from "../names/names.ts";
import { serviceNamed } from "../policies/services-by-name.ts";
import { derived } from "../recipes/indexes.ts";

/** `NAME CLUSTER` of each provider whose service and port exist: Envoy rejects a reference to a cluster that it does not have. */
export function credentialProviders({ mesh, services }: Snapshot): readonly string[] {
  return mesh.extensionProviders.some(({ sds }) => sds !== undefined) ? known("", mesh, services) : NONE;
}

const NONE: readonly string[] = [];

const known = derived((_: string, { extensionProviders }: MeshConfig, services: readonly Service[]) =>
  extensionProviders.flatMap(({ sds }) => {
    const { name = "", service = "", port = 0 } = sds ?? {};
    const found = service === "" ? undefined : serviceNamed(services, service);
    const isServed = found?.ports.some((one) => one.port === port) === true;
    return isServed ? [`${name} ${outboundCluster(found.hostname, port)}`] : [];
  }),
);
