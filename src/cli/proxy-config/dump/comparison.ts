/** `proxy-status NAME`: whether a proxy has what the control plane says it sent. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isRecord } from "#lib/json/is-record.ts";
import { errorText } from "#lib/mesh-error.ts";
import { unifiedHunks } from "#lib/text/line-diff.ts";
import type { ConfigDump } from "./dump.ts";
import { listAt, objectAt, textAt } from "./json.ts";

const CONTEXT = 7;

/** Says of clusters, listeners and routes whether they match, and how they differ. */
export function compareDumps(istiod: ConfigDump, envoy: ConfigDump): string {
  return SECTIONS.map(({ title, contentOf }) => {
    const [sent, had] = [istiod, envoy].map((dump) => linesOf(() => contentOf(dump)));
    const hunks = unifiedHunks(sent ?? [], had ?? [], CONTEXT);
    const loaded = title === "Routes" ? lastLoaded(envoy) : "";
    if (hunks === "") return `${title} Match${loaded}\n`;
    return `${title} Don't Match${loaded}\n--- Istiod ${title}\n+++ Envoy ${title}\n${hunks}\n`;
  }).join("");
}

interface Section {
  readonly title: string;
  readonly contentOf: (dump: ConfigDump) => JsonValue;
}

/** What is dynamic, without versions and times, by name. */
const SECTIONS: readonly Section[] = [
  {
    title: "Clusters",
    contentOf: (dump) =>
      named(listAt(dump.section("ClustersConfigDump"), "dynamicActiveClusters"), (entry) => objectAt(entry, "cluster")),
  },
  {
    title: "Listeners",
    contentOf: (dump) =>
      named(listAt(dump.section("ListenersConfigDump"), "dynamicListeners"), (entry) =>
        objectAt(entry, "activeState", "listener"),
      ),
  },
  {
    title: "Routes",
    contentOf: (dump) =>
      named(listAt(dump.section("RoutesConfigDump"), "dynamicRouteConfigs"), (entry) =>
        objectAt(entry, "routeConfig").map((route) => ({
          ...route,
          virtualHosts: listAt(route, "virtualHosts").toSorted(byName),
        })),
      ),
  },
];

function named(entries: readonly JsonObject[], resources: (entry: JsonObject) => readonly JsonObject[]): JsonValue {
  return entries.flatMap(resources).sort(byName);
}

function byName(one: JsonObject, other: JsonObject): number {
  const [a, b] = [textAt(one, "name"), textAt(other, "name")];
  return a < b ? -1 : Number(a > b);
}

/** A section that a dump does not have is compared by the words that say so. */
function linesOf(content: () => JsonValue): readonly string[] {
  try {
    return JSON.stringify(content(), inOrder, 4).split("\n");
  } catch (thrown) {
    return [errorText(thrown)];
  }
}

/** Maps have no order, and neither side keeps the one that was sent. */
function inOrder(_key: string, value: unknown): unknown {
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

function lastLoaded(envoy: ConfigDump): string {
  const times = listAt(envoy.find("RoutesConfigDump"), "dynamicRouteConfigs").map((entry) =>
    textAt(entry, "lastUpdated"),
  );
  const last = times
    .filter((time) => time !== "")
    .sort()
    .at(-1);
  return last === undefined ? "" : ` (RDS last loaded at ${new Date(last).toUTCString().replace("GMT", "UTC")})`;
}
