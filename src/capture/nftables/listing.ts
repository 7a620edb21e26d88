/** Reads what `nft list` prints, to compare it with what is wanted. */
import { maskedRange } from "../iptables/saved.ts";
import { NFT_TABLES } from "./ruleset.ts";

/** Our tables in a listing, as they can be given to `nft -f` again. */
export function ownTables(listing: string): ReadonlyMap<string, string> {
  const tables = [...listing.matchAll(/^table inet (\S+) \{\n[\s\S]*?^\}\n/gm)];
  return new Map(tables.flatMap(([text, name = ""]) => (NFT_TABLES.includes(name) ? [[name, text] as const] : [])));
}

/** Whether the tables of a listing hold what these commands of `nft -f` would make from nothing. */
export function isListed(tables: ReadonlyMap<string, string>, commands: readonly string[]): boolean {
  const listed = [...tables].flatMap(([name, text]) => listedLines(name, text));
  return listed.sort().join("\n") === outcome(commands).sort().join("\n");
}

/** A line per chain: its table, its name, its hook and its rules. */
function listedLines(table: string, text: string): string[] {
  return [...text.matchAll(/^\tchain (\S+) \{\n([\s\S]*?)^\t\}\n/gm)].map(([, chain = "", body = ""]) => {
    const lines = body.split("\n").map((line) => line.trim());
    const hook = lines.find((line) => line.startsWith("type ")) ?? "";
    const rules = lines.filter((line) => line !== "" && line !== hook);
    return JSON.stringify([table, chain, canonicalHook(hook), rules.map(canonicalNftRule)]);
  });
}

function outcome(commands: readonly string[]): string[] {
  const chains = new Map<string, { readonly hook: string; readonly rules: string[] }>();
  for (const command of commands) {
    const [, verb, object, table, chain, rest = ""] = /^(\w+) (\w+) inet (\S+)(?: (\S+) ?(.*))?$/.exec(command) ?? [];
    const key = JSON.stringify([table, chain]);
    if (object === "chain") chains.set(key, { hook: canonicalHook(rest), rules: [] });
    if (object !== "rule") continue;
    const [, index = "", rule = ""] = /^(?:index (\d+) )?(.*)$/.exec(rest) ?? [];
    const rules = chains.get(key)?.rules ?? [];
    rules.splice(verb === "insert" ? Number(index) : rules.length, 0, canonicalNftRule(rule));
  }
  return [...chains].map(([key, { hook, rules }]) => JSON.stringify([...JSON.parse(key), hook, rules]));
}

/** Type, hook and priority by number; the policy is never ours to choose. */
function canonicalHook(text: string): string {
  return /type \w+ hook \w+ priority -?\d+/.exec(text)?.[0] ?? "";
}

/**
 * One spelling for all that mean the same: `nft` leaves out what a port says already, quotes names, adds `meta`, prints
 * marks as hexadecimal numbers and single addresses without a length.
 */
export function canonicalNftRule(rule: string): string {
  const words = rule
    .replaceAll(/ packets \d+ bytes \d+/g, "")
    .replaceAll(/\bmeta l4proto (\w+) (?=.*\b\1 [sd]port )/g, "")
    .split(" ");
  return words
    .filter((word) => word !== "meta")
    .map((word) => canonicalWord(word))
    .join(" ");
}

function canonicalWord(word: string): string {
  if (/^0x[\da-f]+$/i.test(word)) return `${Number(word)}`;
  if (/^".*"$/.test(word)) return word.slice(1, -1);
  if (/^[\da-f]*[.:][\da-f.:]*(\/\d+)?$/i.test(word)) return maskedRange(word);
  return word.includes(",") ? word.split(",").sort().join() : word;
}
