import { checkSelector } from "../../checks/labels.ts";
import type { ConfigObject } from "../../schema/config-object.ts";
import { formatField } from "../../schema/field-path.ts";
import { error, type Problem } from "../../schema/problem.ts";
import type { PeerAuthentication } from "./schema.ts";

/** Checks a PeerAuthentication. */
export function* checkPeerAuthentication({ spec }: ConfigObject<PeerAuthentication>): Iterable<Problem> {
  const { selector, portLevelMtls } = spec;
  if (selector !== undefined) yield* checkSelector(selector.matchLabels, "spec.selector.matchLabels");
  if (portLevelMtls === undefined) return;
  const ports = Object.keys(portLevelMtls);
  if (ports.length === 0) yield error("spec.portLevelMtls", "must not be empty");
  else if (Object.keys(selector?.matchLabels ?? {}).length === 0) {
    yield error("spec.portLevelMtls", "needs a selector: ports belong to workloads");
  }
  for (const port of ports) {
    if (!/^[1-9]\d{0,4}$/.test(port) || Number(port) > 65535) {
      yield error(formatField("spec.portLevelMtls", port), "must be a port from 1 to 65535");
    }
  }
}
