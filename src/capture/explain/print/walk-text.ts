/** The way of one packet as text. */
import type { CaptureSettings } from "../../settings/settings.ts";
import { nameEnd } from "../end.ts";
import { formatEndpoint, type Packet } from "../packet.ts";
import type { AskedPacket } from "../packet-flags.ts";
import { reason } from "../reason.ts";
import type { WordedRule } from "../rule-book.ts";
import type { Walk } from "../walk.ts";
import { formatSteps } from "./steps-text.ts";

export function formatWalk(
  walk: Walk<WordedRule>,
  { packet, assumed }: AskedPacket,
  settings: CaptureSettings,
): string {
  const steps = formatSteps(walk.steps, "").map((line, index) => `${`${index + 1}.`.padStart(4)} ${line}`);
  const rules = walk.steps.length === 0 ? ["  no rule applies"] : steps;
  const later = packet.state === "ESTABLISHED" || packet.state === "RELATED";
  return [
    describePacket(packet),
    "",
    ...rules,
    "",
    `${endSentence(walk, packet, settings)}: ${reason(walk.steps)}.`,
    ...(later
      ? ["The nat table is asked about the first packet of a connection only: see --ctstate NEW for that one."]
      : []),
    ...(assumed.length === 0 ? [] : [`Assumed: ${assumed.join(", ")}.`]),
    "",
  ].join("\n");
}

/** `TCP to 10.0.0.5:443, outbound by eth0, sent by user 1000, group 1000` */
function describePacket({ protocol, source, sourcePort, destination, port, owner, ...rest }: Packet): string {
  const from =
    source === undefined ? "" : ` from ${sourcePort === undefined ? source : formatEndpoint(source, sourcePort)}`;
  const sender = owner === undefined ? "" : `, sent by user ${owner.uid}, group ${owner.gid}`;
  const state = rest.state === "NEW" ? "" : `, ${rest.state}`;
  const way = `${rest.direction} by ${rest.interface}`;
  return `${protocol.toUpperCase()}${from} to ${formatEndpoint(destination, port)}, ${way}${sender}${state}`;
}

function endSentence({ end }: Walk, { destination, port, protocol }: Packet, settings: CaptureSettings): string {
  const asked = formatEndpoint(destination, port);
  switch (end.kind) {
    case "captured": {
      const label = nameEnd(end, settings).label;
      if (end.by === "tproxy") return `It ends at ${label}, with its addresses unchanged`;
      return protocol === "tcp"
        ? `It ends at ${label}, which can see that it was sent to ${asked}`
        : `It ends at ${label}`;
    }
    case "local":
      return `It ends at port ${end.port} of this pod, untouched`;
    case "out":
      return `It leaves the pod by ${end.interface} to ${asked}, untouched`;
    case "forwarded":
      return `It is not for this pod and goes on to ${asked} by the pod's routes`;
    case "dropped":
      return "It is dropped";
  }
}
