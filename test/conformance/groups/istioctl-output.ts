/** What istioctl prints of files, and of what a control plane answered. */
import type { JsonObject } from "@bufbuild/protobuf";
import { formatVersions } from "#cli/proxy-config/dump/bootstrap.ts";
import { compareDumps } from "#cli/proxy-config/dump/comparison.ts";
import { parseConfigDump } from "#cli/proxy-config/dump/dump.ts";
import { assignmentsOf, formatAssignments } from "#cli/proxy-config/dump/endpoints.ts";
import { formatDump } from "#cli/proxy-config/dump/json.ts";
import { formatRoutes, routesOf } from "#cli/proxy-config/dump/routes.ts";
import { formatSecrets, secretsOf } from "#cli/proxy-config/dump/secrets.ts";
import { formatSummary } from "#cli/proxy-config/dump/summary.ts";
import { formatProxyStatuses, statusOfClient } from "#cli/proxy-status/proxy-status.ts";
import { compareJson, compareText } from "../compare.ts";
import { type Case, type Group, type Outcome, readJson, readText } from "../harness.ts";
import { registry } from "../resources.ts";

interface OutputCase {
  readonly name: string;
  readonly cmd: string;
  readonly inputs: readonly string[];
  readonly expected: string | readonly string[] | null;
  readonly inlineInput?: Readonly<Record<string, XdsAnswer>>;
  readonly note?: string;
}

interface XdsAnswer {
  readonly controlPlane?: { readonly identifier?: string };
  readonly resources?: readonly JsonObject[];
}

/** Recorded on a day when one of the certificates had ended and the others had not. */
const NOW = new Date("2026-01-01T00:00:00Z");

export const istioctlOutput: Group = {
  name: "istioctl output",
  cases: async (folder) => {
    const file = await readJson<{ readonly cases: readonly OutputCase[] }>(folder, "istioctl/cases.json");
    return (file?.cases ?? []).map((one): Case => ({ name: one.name, check: () => check(folder, one) }));
  },
};

async function check(folder: string, one: OutputCase): Promise<Outcome> {
  const reason = LEFT_OUT.find(([start]) => one.cmd.startsWith(start))?.[1];
  if (reason !== undefined) return { leftOut: reason };
  const texts = await Promise.all(one.inputs.map(async (input) => (await readText(folder, input)) ?? ""));
  if (one.cmd === "proxy-status <pod> diff") return checkComparison(texts);
  const expected = typeof one.expected === "string" ? await readText(folder, one.expected) : undefined;
  if (expected === undefined) throw new Error(`nothing is expected of "${one.cmd}"`);
  if (one.inlineInput !== undefined) return compareTables(statusTable(one.inlineInput), expected);
  const print = COMMANDS.find(([command]) => command === one.cmd)?.[1];
  if (print === undefined) return { leftOut: `there is no "${one.cmd}" here` };
  const printed = print(texts[0] ?? "");
  return one.cmd.endsWith("-o json")
    ? compareJson(JSON.parse(printed), JSON.parse(expected))
    : compareTables(printed, expected);
}

const LEFT_OUT: readonly (readonly [string, string])[] = [
  ["ztunnel-config", "ambient comes later"],
  ["kube-inject", "it has a group of its own"],
  ["x workload entry configure", "machines are registered by the control plane itself"],
];

const dumpOf = (text: string) => parseConfigDump(text, registry());
/** The data does not tell by which port its outputs of endpoints are filtered. */
const filteredEndpoints = (text: string) => [...assignmentsOf(dumpOf(text), { port: 8080 })];
const summary = (text: string, withHeaders: boolean) =>
  formatSummary(dumpOf(text), { filter: {}, verbose: true, withHeaders, now: NOW });

const COMMANDS: readonly (readonly [string, (text: string) => string])[] = [
  ["istioctl proxy-config bootstrap version summary (text)", (text) => formatVersions(dumpOf(text))],
  ["proxy-config routes -f <input>", (text) => formatRoutes(routesOf(dumpOf(text), {}), { verbose: true })],
  ["proxy-config ecds -f <input> -o json", (text) => formatDump(dumpOf(text).section("EcdsConfigDump"), "json")],
  ["proxy-config endpoint -f <input>", (text) => formatAssignments(assignmentsOf(dumpOf(text), {}), false)],
  ["proxy-config endpoint -f <input> -o json", (text) => formatDump(filteredEndpoints(text), "json")],
  ["proxy-config endpoint -f <input> -o yaml", (text) => formatDump(filteredEndpoints(text), "yaml")],
  ["proxy-config secret -f <input> (writer on SDS items)", (text) => formatSecrets(secretsOf(dumpOf(text), NOW))],
  ["proxy-config all -f <input>", (text) => summary(text, false)],
  ["proxy-config all -f <input> (with section headers)", (text) => summary(text, true)],
];

function statusTable(answers: Readonly<Record<string, XdsAnswer>>): string {
  const statuses = Object.values(answers).flatMap(({ controlPlane, resources = [] }) => {
    const { ID = "" } = JSON.parse(controlPlane?.identifier ?? "{}") as { readonly ID?: string };
    return resources.map((client) => statusOfClient(client, ID, NOW.getTime()));
  });
  return formatProxyStatuses(statuses);
}

/** The first with itself: everything matches; with the second: not all of it. */
function checkComparison([first = "", second = ""]: readonly string[]): Outcome {
  const same = compareDumps(dumpOf(first), dumpOf(first));
  const other = compareDumps(dumpOf(first), dumpOf(second));
  return compareJson([same.includes("Don't"), other.includes("Listeners Don't Match")], [false, true]);
}

/** Blanks at the ends of lines are those of the last column, and nobody sees them. */
function compareTables(ours: string, expected: string): Outcome {
  const lines = (text: string) =>
    text
      .trim()
      .split("\n")
      .map((line) => line.trimEnd());
  return compareText(lines(ours).join("\n"), lines(expected).join("\n"));
}
