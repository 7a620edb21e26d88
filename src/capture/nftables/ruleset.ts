/** The rules in the words of `nft`, as one transaction: all of it happens or nothing. */
import type { Match, PortRange, Table, Target } from "../settings/rule.ts";
import { isBuiltInChain } from "../settings/rule.ts";
import type { InetRule } from "./inet-rules.ts";

interface NftTable {
  readonly name: string;
  /** Base chains, which the kernel calls by itself, by the chain of iptables that they stand for. */
  readonly hooks: Readonly<Record<string, string>>;
  /** All chains, in the order in which they are made. */
  readonly chains: readonly string[];
}

/** The tables that we make, in the order in which they are made; everything in them is ours. */
const TABLES = {
  nat: {
    name: "istio-proxy-nat",
    hooks: {
      PREROUTING: "type nat hook prerouting priority -100",
      OUTPUT: "type nat hook output priority -100",
    },
    chains: [
      "PREROUTING",
      "OUTPUT",
      "ISTIO_INBOUND",
      "ISTIO_REDIRECT",
      "ISTIO_IN_REDIRECT",
      "ISTIO_OUTPUT",
      "ISTIO_OUTPUT_DNS",
    ],
  },
  mangle: {
    name: "istio-proxy-mangle",
    hooks: {
      PREROUTING: "type filter hook prerouting priority -150",
      OUTPUT: "type route hook output priority -150",
    },
    chains: ["PREROUTING", "OUTPUT", "ISTIO_DIVERT", "ISTIO_TPROXY", "ISTIO_INBOUND", "ISTIO_DROP"],
  },
  raw: {
    name: "istio-proxy-raw",
    hooks: {
      PREROUTING: "type filter hook prerouting priority -300",
      OUTPUT: "type filter hook output priority -300",
    },
    chains: ["PREROUTING", "OUTPUT", "ISTIO_INBOUND", "ISTIO_OUTPUT_DNS"],
  },
} as const satisfies Partial<Record<Table, NftTable>>;

const TABLE_ENTRIES: readonly (readonly [string, NftTable])[] = Object.entries(TABLES);

/** Names of our tables, all of family inet. */
export const NFT_TABLES: readonly string[] = TABLE_ENTRIES.map(([, { name }]) => name);

/** Commands of `nft -f` that make the rules; whatever was in the tables before is gone. */
export function formatRuleset(rules: readonly InetRule[]): readonly string[] {
  return TABLE_ENTRIES.flatMap(([key, table]) =>
    formatTable(
      table,
      rules.filter((rule) => rule.table === key),
    ),
  );
}

/** Commands of `nft -f` that remove our tables, whether they are there or not. */
export function formatRemoval(tables = NFT_TABLES): readonly string[] {
  return tables.flatMap((name) => [`add table inet ${name}`, `delete table inet ${name}`]);
}

function formatTable({ name, hooks, chains }: NftTable, rules: readonly InetRule[]): readonly string[] {
  if (rules.length === 0) return [];
  const table = `inet ${name}`;
  const used = new Set(rules.flatMap(({ chain, target }) => (target.kind === "jump" ? [chain, target.chain] : chain)));
  const chainLines = chains
    .filter((chain) => used.has(chain))
    .map((chain) => {
      const hook = hooks[chain] === undefined ? "" : ` { ${hooks[chain]} ; }`;
      return `add chain ${table} ${formatChain(chain)}${hook}`;
    });
  return [`add table ${table}`, `flush table ${table}`, ...chainLines, ...formatRules(table, rules)];
}

/** An index must be that of a rule: where a chain is shorter, inserting means appending. */
function formatRules(table: string, rules: readonly InetRule[]): readonly string[] {
  const lengths = new Map<string, number>();
  return rules.map((rule) => {
    const length = lengths.get(rule.chain) ?? 0;
    lengths.set(rule.chain, length + 1);
    const index = (rule.position ?? Number.POSITIVE_INFINITY) - 1;
    const place = `${table} ${formatChain(rule.chain)}`;
    const verb = index < length ? `insert rule ${place} index ${index}` : `add rule ${place}`;
    return `${verb} ${formatNftRule(rule)}`;
  });
}

function formatChain(chain: string): string {
  return isBuiltInChain(chain) ? chain.toLowerCase() : chain.toLowerCase().replaceAll("_", "-");
}

const MATCH_ORDER: readonly Match["kind"][] = ["interface", "protocol", "state", "address", "port", "owner", "mark"];
/** The raw table has only rules about UDP ports, which come first there. */
const RAW_MATCH_ORDER: readonly Match["kind"][] = ["port", "address", "owner"];

/** Matches, counter and target, such as `meta l4proto tcp tcp dport 15008 counter return`. */
export function formatNftRule(rule: InetRule): string {
  const order = rule.table === "raw" ? RAW_MATCH_ORDER : MATCH_ORDER;
  const words = order.flatMap((kind) =>
    rule.matches.filter((match) => match.kind === kind).flatMap((match) => formatMatch(match, rule)),
  );
  return [...words, ...formatTarget(rule.target, rule.family === "v6" ? "ip6" : "ip")].join(" ");
}

function formatMatch(match: Match, rule: InetRule): readonly string[] {
  switch (match.kind) {
    case "protocol":
      return portTellsProtocol(rule) ? [] : [`meta l4proto ${match.protocol}`];
    case "interface":
      return [match.direction === "in" ? "iifname" : "oifname", formatInterface(match.name)];
    case "address": {
      const field = `${rule.family === "v6" ? "ip6" : "ip"} ${match.end === "source" ? "saddr" : "daddr"}`;
      return [field, ...not(match), match.range];
    }
    case "port": {
      const field = `${protocolOf(rule)} ${match.end === "source" ? "sport" : "dport"}`;
      return [field, ...not(match), formatPorts(match.ports)];
    }
    case "owner":
      return [`${rule.table === "raw" ? "meta " : ""}sk${match.of}`, ...not(match), match.id];
    case "mark":
      return [match.of === "packet" ? "mark" : "ct mark", ...not(match), `${match.mark}`];
    case "state":
      return ["ct state", match.states.map((state) => state.toLowerCase()).join()];
  }
}

function protocolOf({ matches }: InetRule): string {
  return matches.find((match) => match.kind === "protocol")?.protocol ?? "th";
}

/** Beside a port the protocol is said twice; Istio does so in some rules, and its text is kept. */
function portTellsProtocol(rule: InetRule): boolean {
  const has = (kind: Match["kind"]) => rule.matches.some((match) => match.kind === kind);
  if (!has("port")) return false;
  if (protocolOf(rule) === "udp") return true;
  return rule.chain === "ISTIO_OUTPUT"
    ? rule.matches.length === 2
    : rule.chain === "ISTIO_OUTPUT_DNS" && has("address");
}

/** `nft` has another wildcard, and needs quotes around what does not look like a name. */
function formatInterface(name: string): string {
  const pattern = name.replace(/\+$/, "*");
  return /^[a-z][\w.-]*$/i.test(pattern) ? pattern : `"${pattern}"`;
}

function formatPorts(ports: readonly PortRange[]): string {
  const texts = ports.map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`));
  return texts.length === 1 ? texts.join() : `{ ${texts.join(", ")} }`;
}

function not({ not: negated }: { readonly not?: true }): readonly string[] {
  return negated ? ["!="] : [];
}

function formatTarget(target: Target, protocol: "ip" | "ip6"): readonly string[] {
  switch (target.kind) {
    case "return":
    case "accept":
    case "drop":
      return ["counter", target.kind];
    case "jump":
      return ["counter jump", formatChain(target.chain)];
    case "redirect":
      return [`counter redirect to :${target.port}`];
    case "tproxy":
      return [`tproxy ${protocol} to :${target.port} meta mark set ${target.mark} counter accept`];
    case "set-mark":
      return [`counter meta mark set ${target.mark}`];
    case "save-mark":
      return ["counter ct mark set mark"];
    case "restore-mark":
      return ["counter meta mark set ct mark"];
    case "set-zone":
      return [`counter ct zone set ${target.zone}`];
  }
}
