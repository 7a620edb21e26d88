import type { ConfigObject } from "../config-object.ts";
import type { ProxyConfigObject } from "../kinds/proxy-config.ts";
import type { Problem } from "../problem.ts";
import { checkNotNegative } from "./amounts.ts";
import { checkSelector } from "./labels.ts";

/** Checks a ProxyConfig. */
export function* checkProxyConfigObject({ spec }: ConfigObject<ProxyConfigObject>): Iterable<Problem> {
  if (spec.selector !== undefined) yield* checkSelector(spec.selector.matchLabels, "spec.selector.matchLabels");
  yield* checkNotNegative(spec.concurrency, "spec.concurrency");
}
