/** Values of an installation, as Helm has them, of which templates read most and injection itself a few. */
import type { Value } from "@mizzen/go-template/value";
import { toValue } from "@mizzen/go-template/value";
import { isRecord } from "#lib/json/is-record.ts";

/** What injection reads of the values. */
export interface InjectionValues {
  /** `.Values` of templates. */
  readonly value: Value;
  readonly hub: string;
  readonly tag: string;
  readonly variant: string;
  readonly proxyImage: string;
  readonly clusterName: string;
  readonly network: string;
  readonly holdsApplication: boolean;
  readonly rewritesProbes: boolean;
}

/** Reads values that are data already. */
export function injectionValues(given: unknown): InjectionValues {
  const at = (...path: readonly string[]): unknown =>
    path.reduce<unknown>(
      (inner, key) => (isRecord(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined),
      given,
    );
  const text = (...path: readonly string[]): string => {
    const value = at(...path);
    return typeof value === "string" || typeof value === "number" ? String(value) : "";
  };
  return {
    value: toValue(given),
    hub: text("global", "hub"),
    tag: text("global", "tag"),
    variant: text("global", "variant"),
    proxyImage: text("global", "proxy", "image") || "proxyv2",
    clusterName: text("global", "multiCluster", "clusterName"),
    network: text("global", "network"),
    holdsApplication: at("global", "proxy", "holdApplicationUntilProxyStarts") === true,
    rewritesProbes: at("sidecarInjectorWebhook", "rewriteAppHTTPProbe") === true,
  };
}
