import { parseGoBool } from "#lib/go/go-bool.ts";
import type { Metadata } from "../schema/config-object.ts";

/** Asks for a policy to be tried out: its verdicts are recorded, not enforced. */
export const DRY_RUN = "istio.io/dry-run";

/** Whether a policy is tried out. Other values than these are refused by the checks. */
export function isDryRun({ annotations }: Metadata): boolean {
  return parseGoBool(annotations[DRY_RUN] ?? "") ?? false;
}
