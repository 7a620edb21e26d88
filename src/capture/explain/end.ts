/** Where packets end, in words. */
import { AGENT_DNS_PORT } from "../rules/family.ts";
import type { CaptureSettings } from "../settings/settings.ts";
import type { End } from "./walk.ts";

/** What kind of place it is: drawings have a colour for each. */
export type EndKind = "envoy-inbound" | "envoy-outbound" | "agent" | "pod" | "out" | "dropped";

export interface NamedEnd {
  readonly kind: EndKind;
  readonly label: string;
}

type Ports = Pick<CaptureSettings, "proxyPort" | "inboundPort">;

export function nameEnd(end: End, { proxyPort, inboundPort }: Ports): NamedEnd {
  switch (end.kind) {
    case "captured":
      if (end.port === inboundPort) return { kind: "envoy-inbound", label: `Envoy's inbound port ${end.port}` };
      if (end.port === proxyPort) return { kind: "envoy-outbound", label: `Envoy's outbound port ${end.port}` };
      if (end.port === AGENT_DNS_PORT) return { kind: "agent", label: `the agent's DNS port ${end.port}` };
      return { kind: "pod", label: `port ${end.port} of the pod` };
    case "local":
      return { kind: "pod", label: "the port that was called, in this pod" };
    case "out":
      return { kind: "out", label: "straight out" };
    case "forwarded":
      return { kind: "out", label: "on by the pod's routes" };
    case "dropped":
      return { kind: "dropped", label: "dropped" };
  }
}
