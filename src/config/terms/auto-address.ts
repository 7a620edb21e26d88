import type { Metadata } from "../schema/config-object.ts";

/** Says of a ServiceEntry whether its hosts get addresses of our own. */
const AUTO_ADDRESS = "networking.istio.io/enable-autoallocate-ip";

/** Whether a ServiceEntry does without addresses of our own. */
export function refusesAutoAddress({ labels }: Metadata): boolean {
  return labels[AUTO_ADDRESS]?.toLowerCase() === "false";
}
