/**
 * The connections that prove capture. From inside a pod there are two:
 *
 *   inbound    the proxy calls its own pod by another address than localhost: it must reach Envoy's inbound port
 *   outbound   anybody else calls an address outside: it must reach Envoy's outbound port
 *
 * Which addresses, ports and users do is not guessed: the walker says what the wanted rules do with a call.
 */
import type { Packet } from "../explain/packet.ts";
import { ruleBook } from "../explain/rule-book.ts";
import { walk } from "../explain/walk.ts";
import type { Dialect } from "../rules/family.ts";
import { LOOPBACK } from "../settings/family.ts";
import type { Family } from "../settings/rule.ts";
import type { CaptureSettings, RangeSet } from "../settings/settings.ts";
import type { Identity } from "./identity.ts";
import type { Endpoint } from "./listeners.ts";

export interface Probe {
  readonly direction: "inbound" | "outbound";
  readonly family: Family;
  readonly caller: Identity;
  /** Address to call from; the kernel's choice when undefined. */
  readonly from: string | undefined;
  readonly to: Endpoint;
  /** Where it must arrive. */
  readonly envoy: Endpoint;
}

export interface ProbeInput {
  readonly settings: CaptureSettings;
  readonly dialect: Dialect;
  readonly family: Family;
  /** Port that is called. */
  readonly port: number;
  /** Who asks; others are tried only where this one does not do. */
  readonly current: Identity;
  /** Interface that leads out. */
  readonly interface: string;
  /** Own address on it, if there is one. */
  readonly address: string | undefined;
}

/** A further address of the pod on loopback, on which nobody listens. */
const SECOND_LOOPBACK: Readonly<Record<Family, string>> = { v4: "127.0.0.6", v6: "::6" };
/** Addresses for documentation: nothing is there, even when the call is not captured. */
const ELSEWHERE: Readonly<Record<Family, string>> = { v4: "192.0.2.1", v6: "2001:db8::1" };
const NOBODY = 65_534;

/** A call that the wanted rules send to Envoy's inbound port; undefined when there is none. */
export function inboundProbe(input: ProbeInput): Probe | undefined {
  const { settings, family, port, current, address } = input;
  const proxy = { uid: parseInt(settings.proxyUids[0] ?? "", 10), gid: parseInt(settings.proxyGids[0] ?? "", 10) };
  const addresses = [
    { address: SECOND_LOOPBACK[family], from: LOOPBACK[family] },
    ...(address === undefined ? [] : [{ address, from: address }]),
  ];
  const candidates = [current, proxy].flatMap((caller) =>
    addresses.map(({ address: to, from }) => ({ caller, from, to: { address: to, port } })),
  );
  return firstThatReaches(input, { direction: "inbound", port: settings.inboundPort, candidates });
}

/** A call that the wanted rules send to Envoy's outbound port; undefined when there is none. */
export function outboundProbe(input: ProbeInput): Probe | undefined {
  const { settings, family, port, current } = input;
  const groups = settings.ownerGroups.kind === "only" ? settings.ownerGroups.groups.map((id) => parseInt(id, 10)) : [];
  const callers = [current, ...[...groups, NOBODY].map((gid) => ({ uid: NOBODY, gid }))];
  const addresses = [ELSEWHERE[family], ...firstAddresses(settings.outboundRanges[family])];
  const ports = [port, ...settings.outboundPorts.map((range) => range.from)];
  const candidates = callers.flatMap((caller) =>
    addresses.flatMap((address) => ports.map((to) => ({ caller, from: undefined, to: { address, port: to } }))),
  );
  return firstThatReaches(input, { direction: "outbound", port: settings.proxyPort, candidates });
}

interface Choice {
  readonly direction: Probe["direction"];
  readonly port: number;
  readonly candidates: readonly Pick<Probe, "caller" | "from" | "to">[];
}

function firstThatReaches({ settings, family, ...rest }: ProbeInput, choice: Choice): Probe | undefined {
  const rules = ruleBook(settings, family, rest.dialect);
  const toSelf = choice.direction === "inbound";
  const found = choice.candidates.find(({ caller, from, to }) => {
    const packet: Packet = {
      family,
      direction: "outbound",
      protocol: "tcp",
      source: from,
      sourcePort: undefined,
      destination: to.address,
      port: to.port,
      toSelf,
      interface: toSelf ? "lo" : rest.interface,
      owner: caller,
      state: "NEW",
    };
    const { end } = walk(rules, packet);
    return end.kind === "captured" && end.port === choice.port;
  });
  if (found === undefined) return undefined;
  return { direction: choice.direction, family, envoy: { address: LOOPBACK[family], port: choice.port }, ...found };
}

/** The address that a range begins with, such as 10.0.0.0 of 10.0.0.0/8: rarely anybody's, and enough to be captured. */
function firstAddresses(ranges: RangeSet): readonly string[] {
  return ranges === "*" ? [] : ranges.map((range) => range.split("/")[0] ?? "");
}
