/** Rules in the words of iptables. */
import type { Match, PortRange, Rule, RuleSpec, Target } from "../settings/rule.ts";

/** A rule of which only its place is typed. */
export interface RuleLine {
  readonly table: string;
  readonly chain: string;
  /** Where to insert it, counted from 1; undefined appends. */
  readonly position: number | undefined;
  /** Matches and target in iptables' own words, such as `-p tcp --dport 15008 -j RETURN`. */
  readonly spec: string;
}

export function ruleLine(rule: Rule): RuleLine {
  return { table: rule.table, chain: rule.chain, position: rule.position, spec: formatSpec(rule) };
}

/** The rule as iptables takes it after `-t TABLE`. */
export function formatRule(rule: Rule): string {
  return formatLine(ruleLine(rule));
}

/** The line as iptables takes it after `-t TABLE`. */
export function formatLine({ chain, position, spec }: RuleLine): string {
  return position === undefined ? `-A ${chain} ${spec}` : `-I ${chain} ${position} ${spec}`;
}

/** Matches in the order in which they were written, which has no meaning, and the target. */
export function formatSpec({ matches, target }: RuleSpec): string {
  const udp = matches.some((match) => match.kind === "protocol" && match.protocol === "udp");
  return [...matches.map(formatMatch), `-j ${formatTarget(target, udp)}`].join(" ");
}

function formatMatch(match: Match): string {
  switch (match.kind) {
    case "protocol":
      return `-p ${match.protocol}`;
    case "interface":
      return `${match.direction === "in" ? "-i" : "-o"} ${match.name}`;
    case "address":
      return `${not(match)}${match.end === "source" ? "-s" : "-d"} ${match.range}`;
    case "port":
      return formatPorts(match);
    case "owner":
      return `-m owner ${not(match)}--${match.of}-owner ${match.id}`;
    case "mark":
      return `-m ${match.of === "packet" ? "mark" : "connmark"} ${not(match)}--mark ${match.mark}`;
    case "state":
      return `-m conntrack --ctstate ${match.states.join()}`;
  }
}

function formatPorts(match: Match & { readonly kind: "port" }): string {
  const option = match.end === "source" ? "--sport" : "--dport";
  const ports = match.ports.map(formatPortRange).join();
  return match.ports.length === 1 ? `${not(match)}${option} ${ports}` : `-m multiport ${not(match)}${option}s ${ports}`;
}

function formatPortRange({ from, to }: PortRange): string {
  return from === to ? `${from}` : `${from}:${to}`;
}

function not({ not: negated }: { readonly not?: true }): string {
  return negated ? "! " : "";
}

function formatTarget(target: Target, udp: boolean): string {
  switch (target.kind) {
    case "return":
      return "RETURN";
    case "accept":
      return "ACCEPT";
    case "drop":
      return "DROP";
    case "jump":
      return target.chain;
    case "redirect":
      // Both spellings are one option; Istio uses either, and its text is kept.
      return `REDIRECT ${udp ? "--to-port" : "--to-ports"} ${target.port}`;
    case "tproxy":
      return `TPROXY --tproxy-mark ${target.mark}/0xffffffff --on-port ${target.port}`;
    case "set-mark":
      return `MARK --set-mark ${target.mark}`;
    case "save-mark":
      return "CONNMARK --save-mark";
    case "restore-mark":
      return "CONNMARK --restore-mark";
    case "set-zone":
      return `CT --zone ${target.zone}`;
  }
}
