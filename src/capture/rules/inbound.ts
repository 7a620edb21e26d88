/** Connections that come into the pod. */
import { mangle, nat, type Rule } from "../rule.ts";
import type { FamilySettings } from "./family.ts";

/** The chains that hand connections to Envoy, without which no other rule has a target. */
export function redirectChains(settings: FamilySettings): readonly Rule[] {
  const to = (port: number) => `-p tcp -j REDIRECT --to-ports ${port}`;
  return [
    nat.append("ISTIO_INBOUND", `-p tcp --dport ${settings.tunnelPort} -j RETURN`, "Envoy itself listens for tunnels"),
    nat.append("ISTIO_REDIRECT", to(settings.proxyPort), "outbound connections enter Envoy here"),
    nat.append("ISTIO_IN_REDIRECT", to(settings.inboundPort), "inbound connections enter Envoy here"),
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
    append("PREROUTING", "-p tcp -j ISTIO_INBOUND", "every inbound connection is looked at"),
    ...(ports === "*"
      ? [
          ...settings.inboundPortsExcluded.map((port) =>
            append("ISTIO_INBOUND", `-p tcp --dport ${port} -j RETURN`, "excluded inbound port"),
          ),
          ...capture("-p tcp"),
        ]
      : ports.flatMap((port) => capture(`-p tcp --dport ${port}`))),
  ];
}

function captureByRedirect(match: string): readonly Rule[] {
  return [nat.append("ISTIO_INBOUND", `${match} -j ISTIO_IN_REDIRECT`, "captured inbound port")];
}

function captureByTproxy(match: string): readonly Rule[] {
  return [
    mangle.append(
      "ISTIO_INBOUND",
      `${match} -m conntrack --ctstate RELATED,ESTABLISHED -j ISTIO_DIVERT`,
      "packets of a known connection stay on the way its first packet took",
    ),
    mangle.append("ISTIO_INBOUND", `${match} -j ISTIO_TPROXY`, "a new connection goes to Envoy"),
  ];
}

function tproxyChains(settings: FamilySettings): readonly Rule[] {
  const mark = settings.tproxyMark;
  return [
    mangle.append(
      "ISTIO_DIVERT",
      `-j MARK --set-mark ${mark}`,
      "the routing table of TPROXY delivers marked packets locally",
    ),
    mangle.append("ISTIO_DIVERT", "-j ACCEPT", "a marked packet needs no further rule"),
    mangle.append(
      "ISTIO_TPROXY",
      `! -d ${settings.loopback} -p tcp -j TPROXY --tproxy-mark ${mark}/0xffffffff --on-port ${settings.inboundPort}`,
      "Envoy's socket gets the connection with its addresses unchanged",
    ),
  ];
}

/** In TPROXY mode marks tell Envoy's own connections to the application from those still to be captured. */
export function tproxyMarks(settings: FamilySettings): readonly Rule[] {
  if (settings.mode !== "TPROXY") return [];
  const mark = settings.tproxyMark;
  const { append, insert } = mangle;
  const toSelf = (owner: string) =>
    append(
      "OUTPUT",
      `! -d ${settings.loopback} -p tcp -o lo -m owner ${owner} -j MARK --set-mark ${OUTBOUND_MARK}`,
      "Envoy calls its own pod by address: outbound, then inbound",
    );
  const inbound = (position: number) => ({ chain: "ISTIO_INBOUND", position });
  return [
    append(
      "PREROUTING",
      `-p tcp -m mark --mark ${mark} -j CONNMARK --save-mark`,
      "answers must find their way back to Envoy",
    ),
    append("OUTPUT", `-p tcp -o lo -m mark --mark ${mark} -j RETURN`, "Envoy to application: marked once is enough"),
    ...settings.proxyUids.map((uid) => toSelf(`--uid-owner ${uid}`)),
    ...settings.proxyGids.map((gid) => toSelf(`--gid-owner ${gid}`)),
    append(
      "OUTPUT",
      `-p tcp -m connmark --mark ${mark} -j CONNMARK --restore-mark`,
      "answers of the application go to Envoy",
    ),
    insert(inbound(1), `-p tcp -m mark --mark ${mark} -j RETURN`, "no endless redirection"),
    insert(inbound(2), `-p tcp -s ${settings.passthrough} -i lo -j RETURN`, "Envoy or agent to application"),
    insert(inbound(3), `-p tcp -i lo -m mark ! --mark ${OUTBOUND_MARK} -j RETURN`, "the application calls itself"),
  ];
}

/** On packets from Envoy's outbound side to its own pod. */
const OUTBOUND_MARK = 1338;
