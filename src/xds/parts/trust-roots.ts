/** The roots that workloads trust, for agents: a new one reaches them at once instead of with their next certificate. */
import { atOnce } from "#lib/async/steps.ts";
import { keptBy } from "#lib/collections/kept-by.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { PROXY_CONFIG_TYPE } from "#protocol/messages/type-urls.ts";
import { recipe } from "#translate/recipes/recipe.ts";
import type { Part, PartsOf, ProxyParts } from "./parts.ts";

/** `ca_certificates_pem` of `istio.mesh.v1alpha1.ProxyConfig`, the only field that is told. */
const CA_CERTIFICATES = 34;

/** What proxies have, and the roots as they are at that time, in PEM, beside it. */
export function withTrustRoots(partsOf: PartsOf, roots: () => readonly string[]): PartsOf {
  /** By the roots: proxies that have the same parts without them have the same ones with them. */
  const shared = new WeakMap<ProxyParts, Map<string, ProxyParts>>();
  return (snapshot, proxy) => {
    const [parts, told] = [partsOf(snapshot, proxy), roots()];
    return keptBy(shared, parts, told.join("\n"), () => {
      return { ...parts, types: new Map(parts.types).set(PROXY_CONFIG_TYPE, [rootsPart(told)]) };
    });
  };
}

function rootsPart(roots: readonly string[]): Part {
  const told = recipe({ name: "", input: { roots }, build: proxyConfig });
  return { key: "trust roots", plan: () => atOnce(new Map([[PROXY_CONFIG_TYPE, [told]]])) };
}

function proxyConfig({ roots }: { readonly roots: readonly string[] }): Uint8Array {
  const message = new MessageWriter();
  for (const root of roots) message.string(CA_CERTIFICATES, root);
  return message.finish();
}
