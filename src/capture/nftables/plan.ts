/** What is to be done with nft so that exactly the wanted rules are there: always one transaction. */
import type { Logger } from "#lib/log/log.ts";
import type { Plan } from "../iptables/plan.ts";
import type { Commands } from "../system/commands.ts";
import { failure } from "../system/failure.ts";
import type { InetRule } from "./inet-rules.ts";
import { isListed, ownTables } from "./listing.ts";
import { formatRemoval, formatRuleset } from "./ruleset.ts";

export interface NftInput {
  readonly commands: Commands;
  readonly log: Logger;
}

/** The rules of our tables as `nft` prints them. Throws when it does not work. */
export async function readNft(commands: Commands): Promise<string> {
  const result = await commands.run("nft", LIST);
  if (result.code !== 0) throw failure("Cannot read the rules with nft", { ...result, program: "nft" });
  return result.stdout;
}

/** Whether `nft` is there and may be used. */
export async function tryNft(commands: Commands): Promise<string | undefined> {
  const { code, stdout } = await commands.run("nft", LIST);
  return code === 0 ? stdout : undefined;
}

/** Priorities as numbers. */
const LIST = ["-y", "list", "ruleset", "inet"];

export function planNft({ commands, log }: NftInput, listing: string, wanted: readonly InetRule[]): Plan {
  const tables = ownTables(listing);
  const additions = formatRuleset(wanted);
  const lines = [...[...tables.keys()].map((name) => `delete table inet ${name}`), ...additions];
  const marks = [
    ...(tables.get("istio-proxy-mangle") ?? "").matchAll(/tproxy ip6? to :\d+ meta mark set (0x[\da-f]+)/g),
  ];
  const load = async (text: string) => commands.run("nft", ["-f", "-"], text);
  return {
    residue: tables.size > 0,
    inPlace: isListed(tables, additions),
    marks: marks.map(([, mark]) => Number(mark)),
    step:
      lines.length === 0
        ? undefined
        : {
            run: async () => {
              const text = `${lines.join("\n")}\n`;
              log.info("Running nft with the following input:", {}, `\n${text.trimEnd()}`);
              const result = await load(text);
              if (result.code !== 0) {
                throw failure("Cannot apply the rules with nft", { ...result, program: "nft", input: text });
              }
            },
            undo: async () => {
              const old = [...formatRemoval(), ...tables.values()].join("\n");
              const { code, stderr } = await load(`${old}\n`);
              if (code !== 0) log.error("Cannot put the rules back with nft", { error: stderr });
            },
          },
  };
}
