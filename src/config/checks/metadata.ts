import type { Metadata } from "../config-object.ts";
import { error, type Problem } from "../problem.ts";
import { formatField } from "../schema/field-path.ts";

/** Annotations that users must not set: they would claim rights, or ask for something the object cannot do. */
const REFUSED: readonly string[] = [
  "internal.istio.io/parent-namespace",
  "internal.istio.io/parents",
  "internal.istio.io/webhook-always-reject",
  "istio.io/dry-run",
];

/** What holds for the metadata of all kinds. */
export function* checkMetadata({ annotations }: Metadata): Iterable<Problem> {
  for (const name of REFUSED) {
    if (Object.hasOwn(annotations, name))
      yield error(formatField("metadata.annotations", name), "must not be set here");
  }
}
