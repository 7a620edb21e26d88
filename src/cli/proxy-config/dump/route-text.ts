/** Routes in a few words. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { listAt, textAt, textsAt } from "./json.ts";

/** What a route matches of the path. */
export function describeMatch(match: JsonValue | undefined): string {
  const [prefix, separated, path, regex] = [
    textAt(match, "prefix"),
    textAt(match, "pathSeparatedPrefix"),
    textAt(match, "path"),
    textAt(match, "safeRegex", "regex"),
  ];
  return [prefix && `${prefix}*`, separated && `PathPrefix:${separated}`, path, regex && `regex ${regex}`]
    .filter((text) => text !== "")
    .join(" ");
}

/** Routes that a listener holds itself: the cluster, if all goes there, else hosts and paths. */
export function describeInlineRoutes(routes: JsonObject): string {
  const cluster = clusterOfAll(routes);
  if (cluster !== "") return clusterText(cluster);
  const hosts = listAt(routes, "virtualHosts").map((host) => {
    const domains = textsAt(host, "domains");
    const where = domains.length === 1 && domains[0] === "*" ? "" : domains.join("/");
    const paths = listAt(host, "routes").map((route) => describeMatch(route.match));
    return where === "" ? paths.join(", ") : `${where} ${paths.join(", ")}`;
  });
  return `Inline Route: ${hosts.join("; ")}`;
}

/** `Cluster: NAME`, but clusters that are called so are not said to be one. */
export function clusterText(name: string): string {
  return name.includes("Cluster") ? name : `Cluster: ${name}`;
}

function clusterOfAll(routes: JsonObject): string {
  const [host, ...otherHosts] = listAt(routes, "virtualHosts");
  const [route, ...otherRoutes] = listAt(host, "routes");
  const isForAll = otherHosts.length === 0 && textsAt(host, "domains").join() === "*" && otherRoutes.length === 0;
  return isForAll && textAt(route, "match", "prefix") === "/" ? textAt(route, "route", "cluster") : "";
}
