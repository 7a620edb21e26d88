/** Tables about single settings of `istio-iptables`. */
import { glob } from "node:fs/promises";
import { join } from "node:path";
import { type GivenOptions, readOptions } from "#capture/settings/options.ts";
import { parseCaptureSettings } from "#capture/settings/settings.ts";
import { compareJson } from "../compare.ts";
import { type Case, type Group, type Outcome, readJson } from "../harness.ts";

interface Row {
  readonly name: string;
  readonly cidr?: string;
  readonly input?: string;
  readonly include?: string;
  readonly exclude?: string;
  readonly expected?: unknown;
  readonly v4?: RangeDump;
  readonly v6?: RangeDump;
}

interface RangeDump {
  readonly IsWildcard?: boolean;
  readonly CIDRs?: readonly string[];
}

interface TableFile {
  /** The upstream function. */
  readonly function: string;
  /** `rejected` where every row is. */
  readonly note: string;
  readonly cases: readonly Row[];
}

/** What our counterpart of an upstream function says to a row. */
const FUNCTIONS: Readonly<Record<string, (row: Row, rejected: boolean) => Outcome>> = {
  SeparateV4V6: ({ cidr = "", v4 = {}, v6 = {} }) =>
    compareJson(parse({ outboundRanges: cidr })?.outboundRanges, { v4: rangesOf(v4), v6: rangesOf(v6) }),
  ValidateIPv4LoopbackCidr: ({ cidr = "" }, rejected) => accepted({ loopbackCidr: cidr }, !rejected),
  ValidateIptablesBinary: ({ input = "", expected }) => accepted({ forcedBinary: input }, expected === undefined),
  ValidateOwnerGroups: ({ include = "", exclude = "" }, rejected) =>
    accepted({ ownerGroups: include, ownerGroupsExcluded: exclude }, !rejected),
};

export const captureSettings: Group = {
  name: "capture settings",
  cases: async (folder) => {
    const at = join(folder, "tools/common/config/tables");
    const cases: Case[] = [];
    for await (const name of glob("*.json", { cwd: at })) {
      const table = await readJson<TableFile>(at, name);
      for (const row of table?.cases ?? [])
        cases.push({ name: `${table?.function} ${row.name}`, check: () => check(table, row) });
    }
    return cases;
  },
};

function check(table: TableFile | undefined, row: Row): Outcome {
  const run = FUNCTIONS[table?.function ?? ""];
  return run?.(row, table?.note === "rejected") ?? { leftOut: `we have no counterpart of ${table?.function}` };
}

function accepted(given: GivenOptions, expected: boolean): Outcome {
  return compareJson(parse(given) !== undefined, expected);
}

function parse(given: GivenOptions) {
  const around = { ipv6: true, dnsServers: { v4: [], v6: [] }, proxyUid: "1337" };
  return parseCaptureSettings(readOptions(given, {}).options, around).value;
}

function rangesOf({ IsWildcard: all, CIDRs: ranges }: RangeDump) {
  return all === true ? "*" : (ranges ?? []);
}
