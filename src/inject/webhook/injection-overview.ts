/** Who injects into which namespaces of a cluster, and which pods do not have the proxy that they would get now. */
import { matchesSelector } from "#model/labels/label-selector.ts";
import { IGNORED_NAMESPACES } from "../pod/decision.ts";
import { REVISION } from "../pod/names.ts";
import type { Metadata } from "../pod/pod.ts";
import { injectedRevision, refusesInjection, type WebhookConfiguration } from "./webhook-match.ts";

type Labels = Readonly<Record<string, string>>;

/** A namespace, as far as it matters. */
export interface InjectedNamespace {
  readonly metadata: { readonly name: string; readonly labels?: Labels };
}

/** Pods of a namespace that have a proxy of the same revision, or none. */
export interface RevisionRow {
  readonly namespace: string;
  /** Of new pods: a revision, `MISSING/...` where nobody injects though somebody should, or nothing. */
  readonly revision: string;
  /** Of these pods; empty for pods without a proxy. */
  readonly podRevision: string;
  readonly pods: number;
  /** Pods that refuse injection. */
  readonly disabled: number;
  /** Pods that would be injected otherwise today. */
  readonly needsRestart: number;
}

/** What a webhook configuration injects, into which namespace. */
export interface HookRow {
  /** Undefined for one that injects into no whole namespace. */
  readonly namespace: string | undefined;
  readonly hook: string;
  readonly revision: string;
  /** Empty when it is not known. */
  readonly image: string;
}

/** Namespaces of people that may have sidecars, by name. */
export function injectableNamespaces<Namespace extends InjectedNamespace>(
  namespaces: readonly Namespace[],
  systemNamespace: string,
): readonly Namespace[] {
  return namespaces
    .filter(({ metadata: { name } }) => !IGNORED_NAMESPACES.has(name) && name !== systemNamespace)
    .filter(({ metadata: { labels = {} } }) => !isAmbient(labels))
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

/** One row for each revision of the pods of a namespace; namespaces without pods and without injection have none. */
export function revisionRows(
  namespaces: readonly InjectedNamespace[],
  hooks: readonly WebhookConfiguration[],
  pods: readonly { readonly metadata: Metadata }[],
): readonly RevisionRow[] {
  const byNamespace = Map.groupBy(pods, ({ metadata }) => metadata.namespace ?? "");
  return namespaces.flatMap(({ metadata }) => {
    const revision = revisionOf(metadata.labels ?? {}, hooks);
    const rows = countRows(byNamespace.get(metadata.name) ?? [], revision);
    const none = revision === "" ? [] : [{ podRevision: revision, pods: 0, disabled: 0, needsRestart: 0 }];
    return (rows.length > 0 ? rows : none).map((row) => ({ namespace: metadata.name, revision, ...row }));
  });
}

/** Hooks by name, with the namespaces whose pods they inject; `images` are those of proxies, by revision. */
export function hookRows(
  namespaces: readonly InjectedNamespace[],
  hooks: readonly WebhookConfiguration[],
  images: ReadonlyMap<string, string>,
): readonly HookRow[] {
  const byName = hooks.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  return byName.flatMap(({ metadata, webhooks = [] }) => {
    const revision = metadata.labels?.[REVISION] ?? "";
    const found = webhooks
      .filter(({ name }) => /^(rev\.)?namespace\.sidecar-injector\.istio\.io$/.test(name))
      .flatMap(({ namespaceSelector = {} }) =>
        namespaces.filter((namespace) => matchesSelector(namespaceSelector, namespace.metadata.labels ?? {}) === true),
      );
    const names = new Set(found.map((namespace) => namespace.metadata.name));
    const row = { hook: metadata.name, revision, image: images.get(revision) ?? "" };
    const shown: readonly (string | undefined)[] = names.size === 0 ? [undefined] : [...names];
    return shown.map((namespace) => ({ ...row, namespace }));
  });
}

function countRows(pods: readonly { readonly metadata: Metadata }[], expected: string) {
  const byRevision = Map.groupBy(pods, ({ metadata }) => injectedRevision(metadata));
  return [...byRevision].sort().map(([podRevision, group]) => {
    const disabled = group.filter(({ metadata }) => refusesInjection(metadata)).length;
    const needsRestart = podRevision === expected ? 0 : group.length - disabled;
    return { podRevision, pods: group.length, disabled, needsRestart };
  });
}

/** That of the first configuration with a webhook for the namespace. */
function revisionOf(labels: Labels, hooks: readonly WebhookConfiguration[]): string {
  const injector = hooks.find(({ webhooks = [] }) =>
    webhooks.some(({ namespaceSelector = {} }) => matchesSelector(namespaceSelector, labels) === true),
  );
  if (injector !== undefined) return injector.metadata.labels?.[REVISION] ?? "";
  const wanted = labels[REVISION] ?? "";
  if (wanted !== "") return `MISSING/${wanted}`;
  return [undefined, "disabled"].includes(labels["istio-injection"]) ? "" : "MISSING/istio-injection";
}

/** Pods of such namespaces have no sidecars. */
function isAmbient(labels: Labels): boolean {
  const hasSidecars = labels["istio-injection"] === "enabled" || (labels[REVISION] ?? "") !== "";
  return !hasSidecars && labels["istio.io/dataplane-mode"] === "ambient";
}
