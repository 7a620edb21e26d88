/** Patches of routes. */
import { clone } from "@bufbuild/protobuf";
import {
  type Route,
  RouteSchema,
  type VirtualHost,
  VirtualHostSchema,
} from "#gen/envoy/config/route/v3/route_components_pb.ts";
import { type RouteConfiguration, RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import { placed } from "./list.ts";
import { matchesHost, matchesRoute, matchesRoutes, type RoutesPlace } from "./match.ts";
import { mergeInto } from "./merge.ts";
import type { Patch, PatchSet } from "./patch.ts";

/** The patches that routes are subject to. */
export type RoutePatches = Pick<PatchSet, "ROUTE_CONFIGURATION" | "VIRTUAL_HOST" | "HTTP_ROUTE">;

/** Changes the routes: as a whole, then host by host and route by route, then new hosts are added. */
export function patchRoutes(patches: RoutePatches, routes: RouteConfiguration, place: RoutesPlace): void {
  for (const { operation, match, value } of patches.ROUTE_CONFIGURATION) {
    if (operation !== "MERGE" || value === undefined) continue;
    if (matchesRoutes(match.routeConfiguration, routes.name, place)) mergeInto(RouteConfigurationSchema, routes, value);
  }
  const fits = ({ match }: Patch) => matchesRoutes(match.routeConfiguration, routes.name, place);
  const hostPatches = patches.VIRTUAL_HOST.filter(fits);
  const routePatches = patches.HTTP_ROUTE.filter(fits);
  const removed = new Set<string>();
  const hosts = routes.virtualHosts.map((host) => {
    const left = patchedHost({ VIRTUAL_HOST: hostPatches, HTTP_ROUTE: routePatches }, host);
    if (typeof left !== "string") return left;
    removed.add(left);
    return host;
  });
  const added = hostPatches.flatMap(({ operation, value }) =>
    operation === "ADD" && value !== undefined ? [clone(VirtualHostSchema, value)] : [],
  );
  routes.virtualHosts = [...hosts, ...added].filter(({ name }) => !removed.has(name));
}

/** The host and its routes after their patches; its name when it is removed, and with it all of that name. */
export function patchedHost(
  patches: Pick<PatchSet, "VIRTUAL_HOST" | "HTTP_ROUTE">,
  host: VirtualHost,
): VirtualHost | string {
  let current = host;
  for (const { operation, match, value } of patches.VIRTUAL_HOST) {
    if (!matchesHost(match.routeConfiguration, current)) continue;
    if (operation === "REMOVE") return current.name;
    if (value === undefined) continue;
    if (operation === "MERGE") mergeInto(VirtualHostSchema, current, value);
    else if (operation === "REPLACE") current = clone(VirtualHostSchema, value);
  }
  patchHostRoutes(patches.HTTP_ROUTE, current);
  return current;
}

function patchHostRoutes(all: readonly Patch<"HTTP_ROUTE">[], host: VirtualHost): void {
  const patches = all.filter(({ match }) => matchesHost(match.routeConfiguration, host));
  let routes = host.routes.filter((route) => patchRoute(patches, route));
  for (const { operation, match, value } of patches) {
    if (value === undefined || !ADDS_ROUTES.has(operation)) continue;
    const namesRoute = match.routeConfiguration?.vhost?.route !== undefined;
    const names = (route: Route) => matchesRoute(match.routeConfiguration, route);
    // One that is to be the first is put there only beside the route it names.
    if (operation === "INSERT_FIRST" && namesRoute && !routes.some(names)) continue;
    const item = () => [clone(RouteSchema, value)];
    routes = placed(routes, { operation, item, names: namesRoute ? names : undefined });
  }
  host.routes = routes;
}

const ADDS_ROUTES: ReadonlySet<string> = new Set(["ADD", "INSERT_FIRST", "INSERT_BEFORE", "INSERT_AFTER"]);

/** False when the route is removed. */
function patchRoute(patches: readonly Patch<"HTTP_ROUTE">[], route: Route): boolean {
  for (const { operation, match, value } of patches) {
    if (!matchesRoute(match.routeConfiguration, route)) continue;
    if (operation === "REMOVE") return false;
    if (operation === "MERGE" && value !== undefined) mergeInto(RouteSchema, route, value);
  }
  return true;
}
