/** Traffic capture where a proxy cannot be told from its app by its account; `plan/one-account.ts` has the whole of it. */

import { formatRestore } from "#capture/iptables/restore.ts";
import { ruleLine } from "#capture/iptables/rule-text.ts";
import { captureRules } from "#capture/rules/capture-rules.ts";
import { type GivenOptions, readOptions } from "#capture/settings/options.ts";
import type { Match, Rule } from "#capture/settings/rule.ts";
import { parseCaptureSettings } from "#capture/settings/settings.ts";
import { DEFAULT_RANGE } from "../mesh/address-range.ts";
import { PROXY_ID } from "../mesh/mesh.ts";
import { PROXY_MARK } from "../plan/one-account.ts";

/** The capture rules with these options, for `iptables-restore --noflush`. */
export function markedCaptureRules(given: GivenOptions, range = DEFAULT_RANGE): string {
  const excluded = [given.outboundRangesExcluded ?? "", `${range.controlPlane}/32`].filter((part) => part !== "");
  const { options } = readOptions({ ...given, outboundRangesExcluded: excluded.join(",") }, {});
  const around = { ipv6: false, dnsServers: { v4: [range.gateway], v6: [] }, proxyUid: String(PROXY_ID) };
  const { value: settings, problems } = parseCaptureSettings(options, around);
  if (settings === undefined) throw new Error(problems.map(({ message }) => message).join("; "));
  return formatRestore(captureRules(settings, "v4").filter(isNeeded).map(marked).map(ruleLine));
}

/**
 * User and group of the proxy have rules of their own; one mark stands for both. Zones keep the agent's questions to a name
 * server apart from its app's, but here it asks another one.
 */
function isNeeded({ table, matches }: Rule): boolean {
  return table !== "raw" && !matches.some((match) => match.kind === "owner" && match.of === "gid");
}

function marked(rule: Rule): Rule {
  return { ...rule, matches: rule.matches.map(markMatch) };
}

function markMatch(match: Match): Match {
  if (match.kind !== "owner") return match;
  return { kind: "mark", of: "packet", mark: PROXY_MARK, ...(match.not === undefined ? {} : { not: match.not }) };
}
