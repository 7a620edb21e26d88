/** Whom a policy applies to. */

import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Attachment } from "#config/selection/check.ts";
import type { Features } from "#model/features.ts";
import { hasLabels } from "#model/labels/labels.ts";

/** Who is asked about. */
export interface Workload {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** The label by which a proxy says that it serves a Gateway of the Gateway API. */
const GATEWAY_NAME = "gateway.networking.k8s.io/gateway-name";

/** Whether a policy that may apply to the namespace applies to the workload: by labels, or by the gateway it serves. */
export function isAttached(
  { spec, metadata }: ConfigObject<Attachment>,
  workload: Workload,
  { gatewaySelectors }: Pick<Features, "gatewaySelectors">,
): boolean {
  const targets = [...(spec.targetRefs ?? []), ...(spec.targetRef === undefined ? [] : [spec.targetRef])];
  const gateway = workload.labels[GATEWAY_NAME];
  if (targets.length > 0) {
    const isGateway = ({ group, kind, name }: (typeof targets)[number]) =>
      group === "gateway.networking.k8s.io" && kind === "Gateway" && name === gateway;
    return metadata.namespace === workload.namespace && targets.some(isGateway);
  }
  if (gateway !== undefined && !gatewaySelectors) return false;
  return hasLabels(workload.labels, spec.selector?.matchLabels);
}
