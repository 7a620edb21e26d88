/** Connections that come into the pod. */
import { type Match, mangle, nat, type Rule } from "../settings/rule.ts";
import type { FamilySettings } from "./family.ts";
import {
  accepts,
  from,
  fromInterface,
  inState,
  jumps,
  marked,
  notMarked,
  notTo,
  type Owner,
  ofMarkedConnection,
  ownedBy,
  redirects,
  restoresMark,
  returns,
  savesMark,
  setsMark,
  TCP,
  toInterface,
  toPort,
} from "./spec.ts";

/** The chains that hand connections to Envoy, without which no other rule has a target. */
export function redirectChains(settings: FamilySettings): readonly Rule[] {
  return [
    nat.append("ISTIO_INBOUND", returns(TCP, toPort(settings.tunnelPort)), "Envoy itself listens for tunnels"),
    nat.append("ISTIO_REDIRECT", redirects(settings.proxyPort, TCP), "outbound connections enter Envoy here"),
    nat.append("ISTIO_IN_REDIRECT", redirects(settings.inboundPort, TCP), "inbound connections enter Envoy here"),
  ];
}

/** What arrives on the ports to capture goes to Envoy: by REDIRECT, or by TPROXY, which keeps the caller's address. */
export function inboundPorts(settings: FamilySettings): readonly Rule[] {
  const ports = settings.inboundPorts;
  if (ports.length === 0) return [];
  const tproxy = settings.mode === "TPROXY";
  const { append } = tproxy ? mangle : nat;
  const capture = tproxy ? captureByTproxy : captureByRedirect;
  return [
    ...(tproxy ? tproxyChains(settings) : []),
    append("PREROUTING", jumps("ISTIO_INBOUND", TCP), "every inbound connection is looked at"),
    ...(ports === "*"
      ? [
          ...settings.inboundPortsExcluded.map((port) =>
            append("ISTIO_INBOUND", returns(TCP, toPort(port)), "excluded inbound port"),
          ),
          ...capture([TCP]),
        ]
      : ports.flatMap((port) => capture([TCP, toPort(port)]))),
  ];
}

function captureByRedirect(matches: readonly Match[]): readonly Rule[] {
  return [nat.append("ISTIO_INBOUND", jumps("ISTIO_IN_REDIRECT", ...matches), "captured inbound port")];
}

function captureByTproxy(matches: readonly Match[]): readonly Rule[] {
  return [
    mangle.append(
      "ISTIO_INBOUND",
      jumps("ISTIO_DIVERT", ...matches, inState("RELATED", "ESTABLISHED")),
      "packets of a known connection stay on the way its first packet took",
    ),
    mangle.append("ISTIO_INBOUND", jumps("ISTIO_TPROXY", ...matches), "a new connection goes to Envoy"),
  ];
}

function tproxyChains({ tproxyMark: mark, inboundPort: port, loopback }: FamilySettings): readonly Rule[] {
  return [
    mangle.append("ISTIO_DIVERT", setsMark(mark), "the routing table of TPROXY delivers marked packets locally"),
    mangle.append("ISTIO_DIVERT", accepts(), "a marked packet needs no further rule"),
    mangle.append(
      "ISTIO_TPROXY",
      { matches: [notTo(loopback), TCP], target: { kind: "tproxy", port, mark } },
      "Envoy's socket gets the connection with its addresses unchanged",
    ),
  ];
}

/**
 * In TPROXY mode marks tell Envoy's own connections to the application from those still to be captured. These are the
 * marks of connections that Envoy passes on.
 */
export function tproxyToApplication({ mode, tproxyMark: mark }: FamilySettings): readonly Rule[] {
  if (mode !== "TPROXY") return [];
  return [
    mangle.append("PREROUTING", savesMark(TCP, marked(mark)), "answers must find their way back to Envoy"),
    mangle.append(
      "OUTPUT",
      returns(TCP, toInterface("lo"), marked(mark)),
      "Envoy to application: marked once is enough",
    ),
  ];
}

/** What the proxy sends to its own pod comes from its outbound side and is inbound traffic. */
export function tproxyToSelf({ mode, loopback }: FamilySettings, owner: Owner): readonly Rule[] {
  if (mode !== "TPROXY") return [];
  return [
    mangle.append(
      "OUTPUT",
      setsMark(OUTBOUND_MARK, notTo(loopback), TCP, toInterface("lo"), ownedBy(owner)),
      "Envoy calls its own pod by address: outbound, then inbound",
    ),
  ];
}

/** Marked packets are answers or on their way already: they are not captured once more. */
export function tproxyReturns({ mode, tproxyMark: mark, passthrough }: FamilySettings): readonly Rule[] {
  if (mode !== "TPROXY") return [];
  const first = (position: number) => ({ chain: "ISTIO_INBOUND", position });
  const { append, insert } = mangle;
  return [
    append("OUTPUT", restoresMark(TCP, ofMarkedConnection(mark)), "answers of the application go to Envoy"),
    insert(first(1), returns(TCP, marked(mark)), "no endless redirection"),
    insert(first(2), returns(TCP, from(passthrough), fromInterface("lo")), "Envoy or agent to application"),
    insert(first(3), returns(TCP, fromInterface("lo"), notMarked(OUTBOUND_MARK)), "the application calls itself"),
  ];
}

/** On packets from Envoy's outbound side to its own pod. */
const OUTBOUND_MARK = 1338;
