/** The destination rule that applies to a service as seen from a namespace. */

import type { DestinationRule } from "#config/kinds/destination-rule/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { completeHost, isWildcard } from "#config/terms/host.ts";
import { oldestFirst } from "#config/terms/precedence.ts";
import type { Features } from "#model/features.ts";
import type { Service } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { mostSpecific } from "../names/hosts.ts";
import { derived } from "../recipes/indexes.ts";
import { type ScopeSnapshot, type ScopeViewpoint, servicesInScope } from "./egress.ts";

type Rule = ConfigObject<DestinationRule>;

/** The part of a snapshot that rules are found in. */
export type RuleSnapshot = Pick<Snapshot, "destinationRules" | "features" | "mesh">;

/** Who asks: its namespace, and the keys of the rules whose workload selector fits it. */
export interface RuleViewpoint {
  readonly namespace: string;
  readonly selectedRules: readonly string[];
}

/**
 * Rules of the caller's namespace come first, then those the service's namespace exports, then those of the root
 * namespace; within one of these the most specific host. A rule that selects the calling workload beats one that does not.
 */
export function destinationRuleFor(
  snapshot: RuleSnapshot,
  service: Service,
  viewpoint: RuleViewpoint,
): Rule | undefined {
  const candidates = candidateRules(snapshot, service, viewpoint.namespace);
  const selecting = candidates.find(
    (rule) =>
      rule.spec.workloadSelector !== undefined &&
      rule.metadata.namespace === viewpoint.namespace &&
      viewpoint.selectedRules.includes(objectKey(rule)),
  );
  return selecting ?? candidates.findLast((rule) => rule.spec.workloadSelector === undefined);
}

/**
 * The rule of a host, for whichever listener of a Sidecar it is called through: that of the one service the whole scope has
 * by this name, though the listener may have taken one of another namespace. It is the rule of the clusters, too.
 */
export function ruleInScope(
  snapshot: RuleSnapshot & ScopeSnapshot,
  hostname: string,
  viewpoint: RuleViewpoint & ScopeViewpoint,
): Rule | undefined {
  const service = servicesInScope(snapshot, viewpoint).byHost.get(hostname);
  return service && destinationRuleFor(snapshot, service, viewpoint);
}

/** Rules that apply to some workloads only. */
export function selectingRules(snapshot: Snapshot): readonly Rule[] {
  return withSelector("", snapshot.destinationRules);
}

const withSelector = derived((_: string, rules: readonly Rule[]) =>
  rules.filter((rule) => rule.spec.workloadSelector !== undefined),
);

function candidateRules(snapshot: RuleSnapshot, service: Service, namespace: string): readonly Rule[] {
  const { mesh } = snapshot;
  const index = indexOf("", snapshot.features, snapshot.destinationRules, mesh);
  const own = namespace === mesh.rootNamespace ? index.rootPrivate : index.local.get(namespace);
  const found = own === undefined ? undefined : mostSpecific(service.hostname, own.exact, own.wildcards);
  if (found !== undefined) return found.map(({ rule }) => rule);
  const exported = exportedBy(index, service.namespace, { service, namespace });
  return exported.length > 0 ? exported : exportedBy(index, mesh.rootNamespace, { service, namespace });
}

function exportedBy(index: Index, owner: string, to: { service: Service; namespace: string }): readonly Rule[] {
  const rules = index.exported.get(owner);
  if (rules === undefined) return [];
  const found = mostSpecific(to.service.hostname, rules.exact, rules.wildcards) ?? [];
  return found
    .filter(({ exportTo }) => exportTo.size === 0 || exportTo.has("*") || exportTo.has(to.namespace))
    .map(({ rule }) => rule);
}

/** Rules of one host that were joined into one, as far as their visibility allows. */
interface Entry {
  rule: Rule;
  readonly exportTo: ReadonlySet<string>;
  /** Rules that are seen by different namespaces stay apart. */
  readonly separateExports: boolean;
}

interface RulesByHost {
  readonly exact: Map<string, Entry[]>;
  readonly wildcards: Map<string, Entry[]>;
}

interface Index {
  /** What proxies of the rule's own namespace see. */
  readonly local: Map<string, RulesByHost>;
  /** What others may see, by the rule's namespace. */
  readonly exported: Map<string, RulesByHost>;
  /** Private rules of the root namespace. */
  readonly rootPrivate: RulesByHost;
}

const indexOf = derived((_: string, features: Features, rules: readonly Rule[], mesh: MeshConfig): Index => {
  const { domain, separateExports } = features;
  const index: Index = { local: new Map(), exported: new Map(), rootPrivate: emptyRules() };
  for (const rule of [...rules].sort(selectorsFirst)) {
    const { namespace } = rule.metadata;
    const host = completeHost(rule.spec.host, namespace, domain);
    const exportTo = new Set(rule.spec.workloadSelector === undefined ? rule.spec.exportTo : ["."]);
    const seenAtHome = exportTo.size === 0 || ["*", ".", namespace].some((target) => exportTo.has(target));
    if (seenAtHome) add(rulesOf(index.local, namespace), host, { rule, exportTo, separateExports });
    if (!isPrivate(exportTo, namespace, mesh))
      add(rulesOf(index.exported, namespace), host, { rule, exportTo, separateExports });
    else if (namespace === mesh.rootNamespace) add(index.rootPrivate, host, { rule, exportTo, separateExports });
  }
  return index;
});

function isPrivate(exportTo: ReadonlySet<string>, namespace: string, mesh: MeshConfig): boolean {
  if (exportTo.size === 0) return mesh.defaultDestinationRuleExportTo.includes(".");
  return exportTo.size === 1 && (exportTo.has(".") || exportTo.has(namespace));
}

function selectorsFirst(a: Rule, b: Rule): number {
  const rank = (rule: Rule) => (rule.spec.workloadSelector === undefined ? 1 : 0);
  return rank(a) - rank(b) || oldestFirst(a, b);
}

function rulesOf(byNamespace: Map<string, RulesByHost>, namespace: string): RulesByHost {
  const known = byNamespace.get(namespace) ?? emptyRules();
  byNamespace.set(namespace, known);
  return known;
}

function emptyRules(): RulesByHost {
  return { exact: new Map(), wildcards: new Map() };
}

/**
 * A second rule for a host adds its subsets to the first, and its policy if the first has none. One for all workloads does so
 * for those that select some, too, which come first, and stands beside them.
 */
function add(rules: RulesByHost, host: string, added: Entry): void {
  const byHost = isWildcard(host) ? rules.wildcards : rules.exact;
  const entries = byHost.get(host) ?? [];
  byHost.set(host, entries);
  let standsAlone = true;
  for (const entry of entries) {
    const isForTheSame = haveSameSelector(entry.rule, added.rule);
    const isForAll = added.rule.spec.workloadSelector === undefined;
    const isJoined = isSameAudience(entry, added) && (isForTheSame || isForAll);
    standsAlone = !(isJoined && isForTheSame); // of several the last decides, as with istiod
    if (isJoined) entry.rule = joined("", entry.rule, added.rule);
  }
  if (standsAlone) entries.push({ ...added });
}

/** Rules are joined when the added one is seen by the same namespaces, or by more. */
function isSameAudience(entry: Entry, added: Entry): boolean {
  if (!added.separateExports) return true;
  if (added.exportTo.symmetricDifference(entry.exportTo).size === 0) return true;
  return entry.exportTo.size > 0 && entry.exportTo.isSubsetOf(added.exportTo);
}

function haveSameSelector(a: Rule, b: Rule): boolean {
  return selectorText(a) === selectorText(b);
}

function selectorText({ spec }: Rule): string | undefined {
  if (spec.workloadSelector === undefined) return undefined;
  return JSON.stringify(Object.entries(spec.workloadSelector.matchLabels ?? {}).sort());
}

const joined = derived((_: string, known: Rule, other: Rule): Rule => {
  const names = new Set(known.spec.subsets?.map(({ name }) => name));
  const added = (other.spec.subsets ?? []).filter(({ name }) => !names.has(name));
  const trafficPolicy = known.spec.trafficPolicy ?? other.spec.trafficPolicy;
  return { ...known, spec: { ...known.spec, trafficPolicy, subsets: [...(known.spec.subsets ?? []), ...added] } };
});
