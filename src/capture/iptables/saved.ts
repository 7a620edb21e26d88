/** Reads what `iptables-save` prints. */
import ipaddr from "ipaddr.js";

/** Rules by chain; every chain of the table has an entry. Rules are specs: what follows `-A CHAIN`. */
export type TableState = ReadonlyMap<string, readonly string[]>;
export type State = ReadonlyMap<string, TableState>;

/** State of all tables in the text; comments, counters and policies are left out. */
export function parseSaved(text: string): State {
  const state = new Map<string, Map<string, string[]>>();
  let table = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const rule = /^(?:\[\d+:\d+\] )?-A (\S+) (.*)$/.exec(line);
    if (rule !== null) chainOf(table, rule[1] ?? "").push(rule[2] ?? "");
    else if (line.startsWith(":")) chainOf(table, line.slice(1).split(" ")[0] ?? "");
    else if (line.startsWith("*")) {
      table = new Map();
      state.set(line.slice(1).trim(), table);
    }
  }
  return state;
}

/** The sections of these tables again; those that the text does not have are empty. */
export function formatSaved(saved: string, tables: readonly string[]): string {
  const sections = new Map(
    [...saved.matchAll(/^\*(\S+)\n[\s\S]*?^COMMIT\n/gm)].map(([text, table = ""]) => [table, text]),
  );
  return tables.map((table) => sections.get(table) ?? `*${table}\nCOMMIT\n`).join("");
}

function chainOf(table: Map<string, string[]>, chain: string): string[] {
  const rules = table.get(chain) ?? [];
  table.set(chain, rules);
  return rules;
}

/**
 * One spelling for all that mean the same: the kernel gives a rule back in other words than it was told (`--set-mark 1337`
 * as `--set-xmark 0x539/0xffffffff`, `-m tcp` added, matches in another order).
 */
export function canonicalSpec(spec: string): string {
  const words = spec.match(/"[^"]*"|\S+/g) ?? [];
  const jump = words.findIndex((word) => word === "-j" || word === "--jump");
  const matches = options(jump < 0 ? words : words.slice(0, jump));
  const target = jump < 0 ? [] : options(words.slice(jump));
  return [...matches.filter((match) => !match.startsWith("-m ")).sort(), ...target.sort()].join(" ");
}

/** Splits into options with their values and a `!` before them. */
function options(words: readonly string[]): string[] {
  const groups: string[][] = [];
  let negated = false;
  for (const word of words) {
    if (word === "!") negated = true;
    else if (word.startsWith("-")) {
      groups.push(negated ? ["!", word] : [word]);
      negated = false;
    } else groups.at(-1)?.push(word);
  }
  return groups.map((group) => canonicalOption(group.join(" "))).filter((option) => option !== "");
}

function canonicalOption(option: string): string {
  const [, name = "", value = ""] = /^((?:! )?\S+) ?(.*)$/.exec(option) ?? [];
  switch (name) {
    case "-d":
    case "-s":
    case "! -d":
    case "! -s":
      return `${name} ${maskedRange(value)}`;
    case "--to-port":
      return `--to-ports ${value}`;
    case "--mark":
    case "! --mark":
      return `${name} ${hex(value)}`;
    case "--set-mark":
      return `--set-xmark ${hex(value)}/0xffffffff`;
    case "--tproxy-mark":
      return `${name} ${hex(value.split("/")[0] ?? "")}/0xffffffff`;
    // Defaults that are printed though nobody gave them.
    case "--on-ip":
    case "--nfmask":
    case "--ctmask":
      return "";
    default:
      return option;
  }
}

function hex(number: string): string {
  return `0x${Number(number).toString(16)}`;
}

/** The network of a range, since the kernel drops the bits beyond its length; a single address has its full length. */
export function maskedRange(range: string): string {
  const [address = "", bits] = range.split("/");
  if (!ipaddr.isValid(address)) return range;
  const v4 = ipaddr.IPv4.isValid(address);
  const length = bits ?? (v4 ? "32" : "128");
  if (!/^\d{1,3}$/.test(length) || Number(length) > (v4 ? 32 : 128)) return range;
  const masked = v4
    ? ipaddr.IPv4.networkAddressFromCIDR(`${address}/${length}`)
    : ipaddr.IPv6.networkAddressFromCIDR(`${address}/${length}`);
  return `${masked.toString()}/${length}`;
}
