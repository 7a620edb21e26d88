import { checkNotNegative } from "../../checks/amounts.ts";
import { checkSelector } from "../../checks/labels.ts";
import type { ConfigObject } from "../../schema/config-object.ts";
import type { Problem } from "../../schema/problem.ts";
import type { ProxyConfigObject } from "./schema.ts";

/** Checks a ProxyConfig. */
export function* checkProxyConfigObject({ spec }: ConfigObject<ProxyConfigObject>): Iterable<Problem> {
  if (spec.selector !== undefined) yield* checkSelector(spec.selector.matchLabels, "spec.selector.matchLabels");
  yield* checkNotNegative(spec.concurrency, "spec.concurrency");
}
