/** Virtual hosts and routes, as Envoy chooses among them. */
import type { Route, VirtualHost } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import type { RouteConfiguration } from "#gen/envoy/config/route/v3/route_pb.ts";

/** The name itself, then the longest `*.suffix`, then the longest `prefix.*`, then `*`. */
export function matchingVirtualHost(config: RouteConfiguration, called: string): VirtualHost | undefined {
  const host = config.ignorePortInHostMatching ? called.replace(/:\d+$/, "") : called;
  const named = config.virtualHosts.flatMap((one) => one.domains.map((domain) => ({ domain, one })));
  const longest = (fits: (domain: string) => boolean) =>
    named.filter(({ domain }) => fits(domain)).sort((a, b) => b.domain.length - a.domain.length)[0]?.one;
  const isLongEnough = (domain: string) => domain !== "*" && host.length >= domain.length;
  return (
    longest((domain) => domain === host) ??
    longest((domain) => domain.startsWith("*") && isLongEnough(domain) && host.endsWith(domain.slice(1))) ??
    longest((domain) => domain.endsWith("*") && isLongEnough(domain) && host.startsWith(domain.slice(0, -1))) ??
    longest((domain) => domain === "*")
  );
}

/** The first route whose path fits. */
export function matchingRoute({ routes }: VirtualHost, path: string): Route | undefined {
  return routes.find(({ match }) => {
    const specifier = match?.pathSpecifier;
    switch (specifier?.case) {
      case "prefix":
      case "pathSeparatedPrefix":
        return path.startsWith(specifier.value);
      case "path":
        return path === specifier.value;
      case "safeRegex":
        return new RegExp(`^(?:${specifier.value.regex})$`).test(path);
      default:
        throw new Error(`no simulation of a path by ${specifier?.case}`);
    }
  });
}
