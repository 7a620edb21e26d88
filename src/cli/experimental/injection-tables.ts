/** What istioctl prints about injection. */
import type { HookRow, RevisionRow } from "#inject/webhook/injection-overview.ts";
import type { WebhookMatch } from "#inject/webhook/webhook-match.ts";
import { formatGoTable } from "#lib/print/go-table.ts";
import type { Style } from "#lib/print/style.ts";

/** A mark with the codes of its colour, in bytes: that is how wide istioctl takes it for. */
const MARK_WIDTH = 12;

/** `x check-inject`. */
export function formatWebhookMatches(matches: readonly WebhookMatch[], style: Style): string {
  if (matches.length === 0) return "ERROR: no Istio injection hooks present.\n";
  const mark = (injected: boolean) => (injected ? "✔" : "✘").padEnd(MARK_WIDTH);
  const rows = matches.map(({ name, revision, injected, reason }) => [name, revision, mark(injected), reason]);
  const table = formatGoTable([["WEBHOOK", "REVISION", "INJECTED", "REASON"], ...rows], 2)
    .replaceAll("✔", style.good("✔"))
    .replaceAll("✘", style.bad("✘"));
  const isTooMuch = matches.filter(({ injected }) => injected).length > 1;
  return isTooMuch ? `${table}ERROR: multiple webhooks will inject, which can lead to errors` : table;
}

/** The first table of `x injector list`. */
export function formatRevisionRows(rows: readonly RevisionRow[]): string {
  if (rows.length === 0) return "No Istio injected namespaces present.\n";
  const cells = rows.map((row) => [row.namespace, row.revision, countText(row)]);
  return formatGoTable([["NAMESPACE", "ISTIO-REVISION", "POD-REVISIONS"], ...cells], 1);
}

/** The second table of `x injector list`. */
export function formatHookRows(rows: readonly HookRow[]): string {
  if (rows.length === 0) return "No Istio injection hooks present.\n";
  const cells = rows.map(({ namespace = "DOES NOT AUTOINJECT", hook, revision, image }) => [
    namespace,
    hook,
    revision,
    image,
  ]);
  return formatGoTable([["NAMESPACES", "INJECTOR-HOOK", "ISTIO-REVISION", "SIDECAR-IMAGE"], ...cells], 1);
}

function countText({ podRevision, pods, disabled, needsRestart }: RevisionRow): string {
  if (pods === 0) return "<no pods>";
  const refused = disabled > 0 ? ` (injection disabled: ${disabled})` : "";
  const restart = needsRestart > 0 ? ` NEEDS RESTART: ${needsRestart}` : "";
  return `${podRevision || "<non-Istio>"}: ${pods}${refused}${restart}`;
}
