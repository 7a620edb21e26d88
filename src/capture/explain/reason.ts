import type { Rule } from "../settings/rule.ts";

/** Chains that take whatever is sent to them: the reason is why it was sent there. */
const TAKES_ALL: ReadonlySet<string> = new Set(["ISTIO_REDIRECT", "ISTIO_IN_REDIRECT", "ISTIO_TPROXY", "ISTIO_DROP"]);

/** Why a packet that met these rules ended where it did: the reason of the one that decided. */
export function reason(steps: readonly Rule[]): string {
  const capture = steps.findLastIndex(({ target }) => /^(redirect|tproxy|drop)$/.test(target.kind));
  const taken = steps[capture];
  if (taken !== undefined) return (TAKES_ALL.has(taken.chain) ? steps[capture - 1] : taken)?.why ?? taken.why;
  return steps.findLast(({ target }) => /^(return|accept)$/.test(target.kind))?.why ?? "no rule is about it";
}
