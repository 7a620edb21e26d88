/** How virtual services name the gateways they are for. */
import type { VirtualService } from "./schema.ts";

/** The gateway name that means all sidecars. */
export const MESH_GATEWAY = "mesh";

/** `gateway`, `./gateway`, `gateway.namespace...` and `namespace/gateway` all name the Gateway `namespace/gateway`. */
export function completeGateway(gateway: string, namespace: string): string {
  if (gateway === MESH_GATEWAY) return gateway;
  const [home, name] = gateway.split("/");
  if (name !== undefined) return home === "." ? `${namespace}/${name}` : gateway;
  const [first = "", second = namespace] = gateway.split(".");
  return `${second}/${first}`;
}

/** The gateways that a virtual service of a namespace is for: sidecars, where it names none. */
export function gatewaysOf({ gateways = [] }: VirtualService, namespace: string): readonly string[] {
  return gateways.length === 0 ? [MESH_GATEWAY] : gateways.map((gateway) => completeGateway(gateway, namespace));
}
