import { parseGoBool } from "#lib/go/go-bool.ts";
import type { Metadata } from "../schema/config-object.ts";
import { formatField } from "../schema/field-path.ts";
import { error, type Problem } from "../schema/problem.ts";
import { DRY_RUN } from "../terms/dry-run.ts";

/** Annotations that users must not set: they would claim rights, or ask for something the object cannot do. */
const REFUSED: readonly string[] = [
  "internal.istio.io/parent-namespace",
  "internal.istio.io/parents",
  "internal.istio.io/webhook-always-reject",
];

/** What holds for the metadata of all kinds. */
export function* checkMetadata({ annotations }: Metadata, kind: string): Iterable<Problem> {
  for (const name of REFUSED) {
    if (Object.hasOwn(annotations, name))
      yield error(formatField("metadata.annotations", name), "must not be set here");
  }
  if (kind !== "AuthorizationPolicy" && Object.hasOwn(annotations, DRY_RUN)) {
    yield error(formatField("metadata.annotations", DRY_RUN), "is for authorization policies only");
  }
}

/** What an authorization policy, which may be tried out, says about that. */
export function* checkDryRun({ annotations }: Metadata, action: string): Iterable<Problem> {
  const value = annotations[DRY_RUN];
  if (value === undefined) return;
  const field = formatField("metadata.annotations", DRY_RUN);
  if (action !== "ALLOW" && action !== "DENY")
    yield error(field, `is for the actions ALLOW and DENY only, not ${action}`);
  else if (parseGoBool(value) === undefined) {
    yield error(field, `must be "true" or "false", not "${value}"`);
  }
}
