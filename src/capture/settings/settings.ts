/** Options after checking: typed, split by address family, with nothing left that could break out of a rule's text. */
import { isIPv4, isIPv6 } from "node:net";
import { parseDuration } from "@mizzen/go-text/duration";
import ipaddr from "ipaddr.js";
import type { Parsed, Problem } from "#config/schema/problem.ts";
import { parseGoBool } from "#lib/go/go-bool.ts";
import { isLoopback } from "./family.ts";
import { type CaptureOptions, TEXT_OPTIONS, type TextOption, type TextOptionName } from "./options.ts";
import type { Family, PortRange } from "./rule.ts";

/** All, or these. */
export type PortSet = "*" | readonly PortRange[];
export type RangeSet = "*" | readonly string[];

/** Whose outbound traffic is captured. */
export type GroupFilter =
  | { readonly kind: "all-except"; readonly groups: readonly string[] }
  | { readonly kind: "only"; readonly groups: readonly string[] };

/** What the machine says about itself. */
export interface Surroundings {
  /** Rules for IPv6 are wanted: the pod has no IPv4 address, or is dual stack. */
  readonly ipv6: boolean;
  /** Name servers of /etc/resolv.conf. */
  readonly dnsServers: Readonly<Record<Family, readonly string[]>>;
  /** User id of the account that Envoy usually runs as, for when none is given. */
  readonly proxyUid: string;
}

export interface CaptureSettings {
  readonly proxyPort: number;
  readonly inboundPort: number;
  readonly tunnelPort: number;
  readonly proxyUids: readonly string[];
  readonly proxyGids: readonly string[];
  readonly mode: "REDIRECT" | "TPROXY";
  readonly tproxyMark: number;
  readonly tproxyTable: number;
  readonly inboundPorts: PortSet;
  readonly inboundPortsExcluded: readonly PortRange[];
  readonly outboundPorts: readonly PortRange[];
  readonly outboundPortsExcluded: readonly PortRange[];
  readonly outboundRanges: Readonly<Record<Family, RangeSet>>;
  readonly outboundRangesExcluded: Readonly<Record<Family, readonly string[]>>;
  /** A captured range begins in loopback, so calls over loopback are not exempt as a whole. */
  readonly capturesLoopback: boolean;
  readonly ownerGroups: GroupFilter;
  readonly excludedInterfaces: readonly string[];
  readonly virtualInterfaces: readonly string[];
  readonly loopbackCidr: string;
  readonly dns: "off" | "all" | "servers";
  readonly dnsServers: Readonly<Record<Family, readonly string[]>>;
  readonly dropInvalid: boolean;
  readonly ipv6: boolean;
}

/** One `-m owner ! --gid-owner` per group ends up in a single rule, and the kernel limits its length. */
const MAX_OWNER_GROUPS = 64;

/** As `iptables --version` prints it, or only the part that says which back end it is. */
const VERSION = /^$|^(iptables )?v?\d+(\.\d+)*( \((nf_tables|legacy)\))?$|^(nft|nf_tables|legacy)$/;

/** Checks everything and reports every problem, not the first. */
export function parseCaptureSettings(options: CaptureOptions, around: Surroundings): Parsed<CaptureSettings> {
  const read = new OptionReader(options);
  const proxyUid = options.proxyUid === "" ? around.proxyUid : options.proxyUid;
  const captured = read.ranges("outboundRanges");
  read.oneOf("forcedBinary", ["", "legacy", "nft"]);
  read.matching("iptablesVersion", VERSION, 'a version such as "v1.8.9 (nf_tables)", or legacy or nft');
  read.port("probePort");
  read.probeTimeout();
  const settings: CaptureSettings = {
    proxyPort: read.port("proxyPort"),
    inboundPort: read.port("inboundPort"),
    tunnelPort: read.port("tunnelPort"),
    proxyUids: read.names("proxyUid", proxyUid),
    proxyGids: read.names("proxyGid", options.proxyGid === "" ? proxyUid : options.proxyGid),
    mode: read.oneOf("mode", ["", "REDIRECT", "TPROXY"]) === "TPROXY" ? "TPROXY" : "REDIRECT",
    tproxyMark: read.number("tproxyMark", 0xffffffff),
    tproxyTable: read.number("tproxyTable", 0xffffffff),
    inboundPorts: options.inboundPorts === "*" ? "*" : read.ports("inboundPorts"),
    inboundPortsExcluded: read.ports("inboundPortsExcluded"),
    outboundPorts: read.ports("outboundPorts"),
    outboundPortsExcluded: read.ports("outboundPortsExcluded"),
    outboundRanges: { v4: captured.v4, v6: captured.v6 },
    outboundRangesExcluded: read.explicitRanges("outboundRangesExcluded"),
    capturesLoopback: captured.loopback,
    ownerGroups: read.ownerGroups(),
    excludedInterfaces: read.interfaces("excludedInterfaces"),
    virtualInterfaces: read.interfaces("virtualInterfaces"),
    loopbackCidr: read.loopback(),
    dns: dnsCapture(options, around),
    dnsServers: around.dnsServers,
    dropInvalid: options.dropInvalid,
    ipv6: read.optionalSwitch("inboundIpv6") ?? around.ipv6,
  };
  read.contradiction(settings.inboundPorts, "inboundPorts", "inboundPortsExcluded");
  read.contradiction(settings.outboundPorts, "outboundPorts", "outboundPortsExcluded");
  return { value: read.problems.length === 0 ? settings : undefined, problems: read.problems };
}

/** Without a name server to redirect there is nothing to capture. */
function dnsCapture(options: CaptureOptions, around: Surroundings): CaptureSettings["dns"] {
  if (!options.redirectDns) return "off";
  if (options.captureAllDns) return "all";
  return around.dnsServers.v4.length + around.dnsServers.v6.length === 0 ? "off" : "servers";
}

interface Ranges {
  readonly v4: RangeSet;
  readonly v6: RangeSet;
  readonly loopback: boolean;
}

class OptionReader {
  readonly problems: Problem[] = [];
  readonly #options: CaptureOptions;

  constructor(options: CaptureOptions) {
    this.#options = options;
  }

  number(name: TextOptionName, max: number): number {
    const text = this.#options[name];
    const value = /^(\d{1,10}|0x[\da-f]{1,8})$/i.test(text) ? Number(text) : -1;
    if (value < 1 || value > max) this.#problem(name, `must be a number from 1 to ${max}, not "${text}"`);
    return value;
  }

  port(name: TextOptionName): number {
    return this.number(name, 65_535);
  }

  ports(name: TextOptionName): readonly PortRange[] {
    return list(this.#options[name]).map((text) => {
      const [, first = "", last = first] = /^(0|[1-9]\d{0,4})(?::(0|[1-9]\d{0,4}))?$/.exec(text) ?? [];
      const range = { from: Number(first), to: Number(last) };
      if (first === "" || range.from > range.to || range.to > 65_535) {
        this.#problem(name, `must list ports from 0 to 65535 or ranges such as "8000:8080", not "${text}"`);
      }
      return range;
    });
  }

  names(name: TextOptionName, text = this.#options[name]): readonly string[] {
    const names = list(text);
    for (const one of names) {
      if (!/^\w[\w.-]*\$?$/.test(one)) this.#problem(name, `must list ids or account names, not "${one}"`);
    }
    return names;
  }

  interfaces(name: TextOptionName): readonly string[] {
    const names = list(this.#options[name]);
    for (const one of names) {
      if (!/^[\w.@:-]{1,15}\+?$/.test(one)) this.#problem(name, `must list network interfaces, not "${one}"`);
    }
    return names;
  }

  oneOf(name: TextOptionName, allowed: readonly string[]): string {
    const text = this.#options[name];
    const choices = allowed.filter((choice) => choice !== "").join(" or ");
    if (!allowed.includes(text)) this.#problem(name, `must be ${choices}, not "${text}"`);
    return text;
  }

  optionalSwitch(name: TextOptionName): boolean | undefined {
    const text = this.#options[name];
    const value = parseGoBool(text);
    if (text !== "" && value === undefined) this.#problem(name, `must be true or false, not "${text}"`);
    return value;
  }

  matching(name: TextOptionName, pattern: RegExp, wanted: string): void {
    const text = this.#options[name];
    if (!pattern.test(text)) this.#problem(name, `must be ${wanted}, not "${text}"`);
  }

  probeTimeout(): void {
    const text = this.#options.probeTimeout;
    if (!((parseDuration(text) ?? 0) > 0)) {
      this.#problem("probeTimeout", `must be a time such as "5s", not "${text}"`);
    }
  }

  /** Who asks for a port and for its opposite means one of them, and we cannot know which. */
  contradiction(included: PortSet, name: TextOptionName, opposite: TextOptionName): void {
    if (included === "*") return;
    const excluded = new Set(list(this.#options[opposite]));
    const both = list(this.#options[name]).filter((port) => excluded.has(port));
    if (both.length > 0) {
      this.#problem(name, `must not list what ${fieldOf(opposite)} excludes, and both list "${both.join()}"`);
    }
  }

  ranges(name: TextOptionName): Ranges {
    if (this.#options[name] === "*") return { v4: "*", v6: "*", loopback: false };
    const { v4, v6 } = this.explicitRanges(name);
    const loopback = [...v4, ...v6].some((range) => isLoopback(range));
    return { v4, v6, loopback };
  }

  explicitRanges(name: TextOptionName): Record<Family, readonly string[]> {
    const ranges: Record<Family, string[]> = { v4: [], v6: [] };
    for (const text of list(this.#options[name])) {
      const range = parseRange(text);
      if (range === undefined) this.#problem(name, `must list IP ranges such as "10.0.0.0/8", not "${text}"`);
      else ranges[range.family].push(range.text);
    }
    return ranges;
  }

  ownerGroups(): GroupFilter {
    const excluded = this.names("ownerGroupsExcluded");
    if (this.#options.ownerGroups === "*") return { kind: "all-except", groups: excluded };
    const groups = this.names("ownerGroups");
    if (groups.length > MAX_OWNER_GROUPS) {
      this.#problem("ownerGroups", `must not list more than ${MAX_OWNER_GROUPS} groups, and lists ${groups.length}`);
    }
    return { kind: "only", groups };
  }

  loopback(): string {
    const text = this.#options.loopbackCidr;
    const range = parseRange(text);
    if (range?.family !== "v4" || !isLoopback(range.text) || range.bits < 8) {
      this.#problem("loopbackCidr", `must be an IPv4 loopback range from /8 to /32, not "${text}"`);
    }
    return text;
  }

  #problem(name: TextOptionName, message: string): void {
    this.problems.push({ field: fieldOf(name), message, severity: "error" });
  }
}

/** By what a user sets the option: flag and variable. */
function fieldOf(name: TextOptionName): string {
  const { flag, env }: Pick<TextOption, "flag" | "env"> = TEXT_OPTIONS[name];
  if (flag === undefined) return env.join();
  return env.length === 0 ? `--${flag}` : `--${flag} (${env.at(-1)})`;
}

/** Parts between commas; empty ones do not count. */
function list(text: string): readonly string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

interface Range {
  readonly family: Family;
  /** Canonical address and length; bits beyond the length are kept as given. */
  readonly text: string;
  readonly bits: number;
}

function parseRange(text: string): Range | undefined {
  const [address = "", length = "", ...rest] = text.split("/");
  const family = isIPv4(address) ? "v4" : isIPv6(address) && !address.includes("%") ? "v6" : undefined;
  const bits = /^(0|[1-9]\d{0,2})$/.test(length) ? Number(length) : -1;
  if (family === undefined || rest.length > 0 || bits < 0 || bits > (family === "v4" ? 32 : 128)) return undefined;
  return { family, text: `${canonicalAddress(address)}/${bits}`, bits };
}

/** The one spelling of an address that RFC 5952 recommends. */
export function canonicalAddress(address: string): string {
  const parsed = ipaddr.parse(address);
  return parsed instanceof ipaddr.IPv6 ? parsed.toRFC5952String() : parsed.toString();
}
