/** Tables about routes: conditions, faults, copies, virtual hosts of sidecars and of gateways, and patches of them. */
import { create, fromJson, type JsonObject } from "@bufbuild/protobuf";
import type { RouteConfigurationMatch } from "#config/kinds/envoy-filter/schema.ts";
import { type HttpMatch, virtualServiceSchema } from "#config/kinds/virtual-service/schema.ts";
import { parse } from "#config/schema/parse.ts";
import {
  RouteAction_RequestMirrorPolicySchema,
  RouteSchema,
  type VirtualHost,
  VirtualHost_TlsRequirementType,
  VirtualHostSchema,
} from "#gen/envoy/config/route/v3/route_components_pb.ts";
import type { RouteConfiguration } from "#gen/envoy/config/route/v3/route_pb.ts";
import { HTTPFaultSchema } from "#gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts";
import { MetadataMatcherSchema } from "#gen/envoy/type/matcher/v3/metadata_pb.ts";
import { placed } from "#translate/patches/list.ts";
import { matchesHost, matchesRoute, matchesRoutes } from "#translate/patches/match.ts";
import { routeMatch, takesEveryRequest } from "#translate/routes/match.ts";
import { filterSettings } from "#translate/routes/per-filter.ts";
import { compareJson, firstOf } from "../../compare.ts";
import type { KubernetesObject } from "../../kubernetes-mesh.ts";
import type { ServiceDump } from "../../recorded-mesh.ts";
import { byRow, type RowCheck } from "../../unit-tables.ts";
import { networking, opened, shown, tableResources, written } from "./table-mesh.ts";

const HTTP_80 = [{ Name: "http-80", Port: 80, Protocol: "HTTP" }];

/** The routes to a service whose virtual service has that one route. */
function routesTo(route: object) {
  const services = ["web.example.com", "copy.example.com"].map((Hostname, i) => ({
    ...{ Hostname, DefaultAddress: `10.96.0.${i + 1}`, Ports: HTTP_80 },
    Attributes: { Namespace: "default", ServiceRegistry: "Kubernetes" },
  }));
  const http = [{ route: [{ destination: { host: "web.example.com" } }], ...route }];
  const configs = [networking("VirtualService", { hosts: ["web.example.com"], http })];
  const { virtualHosts } = tableResources({ services, configs }).route("80");
  return virtualHosts.find(({ name }) => name === "web.example.com:80")?.routes ?? [];
}

function mirrorOf(route: object): unknown {
  const action = routesTo(route)[0]?.action;
  const [policy] = action?.case === "route" ? action.value.requestMirrorPolicies : [];
  const json = shown(RouteAction_RequestMirrorPolicySchema, policy) as
    | { readonly runtimeFraction?: object }
    | undefined;
  return json?.runtimeFraction;
}

const COPY = { host: "copy.example.com" };

const claims: RowCheck = byRow<{ name: string; in?: object; want?: object }>(({ name, in: given = {}, want }) => {
  const headers = { [name]: given };
  const [match = {}] = matches([{ headers }]);
  const [ours] = routeMatch(match).dynamicMetadata ?? [];
  return compareJson(
    ours && shown(MetadataMatcherSchema, create(MetadataMatcherSchema, ours)),
    written(MetadataMatcherSchema, want),
  );
});

function matches(match: readonly object[]): readonly HttpMatch[] {
  return parse(virtualServiceSchema, { http: [{ match }] }, "").value?.http?.[0]?.match ?? [];
}

/** The condition of the API that leads to such a condition of Envoy. */
function conditionOf({ match }: { readonly match: JsonObject }): HttpMatch | undefined {
  const {
    prefix,
    path,
    safeRegex,
    headers = [],
    queryParameters = [],
  } = match as {
    readonly prefix?: string;
    readonly path?: string;
    readonly safeRegex?: { readonly regex: string };
    readonly headers?: readonly { readonly name: string }[];
    readonly queryParameters?: readonly { readonly name: string }[];
  };
  if (prefix === undefined && path === undefined && safeRegex === undefined) return undefined;
  const named = (list: readonly { readonly name: string }[]) => Object.fromEntries(list.map(({ name }) => [name, {}]));
  const uri = { ...(prefix && { prefix }), ...(path && { exact: path }), ...(safeRegex && { regex: safeRegex.regex }) };
  return { uri, headers: named(headers), queryParams: named(queryParameters) };
}

const catchAll: RowCheck = byRow<{ route: { match: JsonObject }; want: boolean }>(({ route, want }) => {
  const condition = conditionOf(route);
  if (condition === undefined) return { leftOut: "ours never write `/` as whole parts of a path, which Envoy refuses" };
  return compareJson(takesEveryRequest(condition), want);
});

const fault: RowCheck = byRow<{ fault: object; want: object }>(({ fault: given, want }) => {
  const spec = parse(virtualServiceSchema, { http: [{ fault: given }] }, "").value;
  const settings = filterSettings({ fault: spec?.http?.[0]?.fault }, [])["envoy.filters.http.fault"];
  return compareJson(shown(HTTPFaultSchema, opened(HTTPFaultSchema, settings)), written(HTTPFaultSchema, want));
});

const caller: RowCheck = byRow<{
  args: { match: { readonly sourceNamespace?: string }; proxyNamespace: string };
  want: boolean;
}>(({ args: { match, proxyNamespace }, want }) => {
  const http = [{ match: [{ ...match, uri: { prefix: "/x" } }], route: [{ destination: { host: "a.example.com" } }] }];
  const configs = [networking("VirtualService", { hosts: ["a.example.com"], http })];
  const Attributes = { Namespace: "default", ServiceRegistry: "Kubernetes" };
  const services = [{ Hostname: "a.example.com", DefaultAddress: "10.96.0.1", Ports: HTTP_80, Attributes }];
  const { virtualHosts } = tableResources({ services, configs }, { configNamespace: proxyNamespace }).route("80");
  const routes = virtualHosts.find(({ name }) => name === "a.example.com:80")?.routes ?? [];
  return compareJson(
    routes.some(({ match }) => match?.pathSpecifier.value === "/x"),
    want,
  );
});

/** Domains by virtual host. */
function domainsOf({ virtualHosts }: RouteConfiguration): Readonly<Record<string, readonly string[]>> {
  return sorted(Object.fromEntries(virtualHosts.map(({ name, domains }) => [name, domains])));
}

/** Capital letters in hosts make no difference to Envoy. */
function sorted(domains: Readonly<Record<string, readonly string[]>>): Readonly<Record<string, readonly string[]>> {
  const small = (text: string) => text.toLowerCase();
  return Object.fromEntries(Object.entries(domains).map(([name, list]) => [small(name), list.map(small).sort()]));
}

/** A service of the test that the table was taken from, whose services are not in the data. */
function testService(host: string, where: { ip: string; namespace: string; isPrivate?: boolean }, ...ports: number[]) {
  return {
    Hostname: host,
    DefaultAddress: where.ip,
    Resolution: where.ip === "0.0.0.0" ? 2 : 1,
    Ports: ports.map((port) => ({ Name: `http-${port}`, Port: port, Protocol: "HTTP" })),
    Attributes: {
      Namespace: where.namespace,
      ServiceRegistry: "Kubernetes",
      ExportTo: [where.isPrivate === true ? "." : "*"],
    },
  };
}

const [HERE, THERE] = ["not-default", "default"];
const TEST_SERVICES = [
  testService("bookinfo.com", { ip: "0.0.0.0", namespace: THERE }, 9999, 70),
  testService("private.com", { ip: "0.0.0.0", namespace: THERE, isPrivate: true }, 9999, 80),
  testService("test.com", { ip: "8.8.8.8", namespace: HERE }, 8080),
  testService("test-private.com", { ip: "9.9.9.9", namespace: HERE, isPrivate: true }, 80, 70),
  testService("test-private-2.com", { ip: "9.9.9.10", namespace: HERE, isPrivate: true }, 60),
  testService("test-headless.com", { ip: "0.0.0.0", namespace: HERE }, 8888),
  testService("service-A.default.svc.cluster.local", { ip: "", namespace: THERE }, 7777),
];

const sidecarRoutes: RowCheck = byRow<{
  sidecarConfig?: KubernetesObject;
  virtualServiceConfigs?: readonly KubernetesObject[];
  registryOnly: boolean;
  routeName: string;
  expectedHosts: Readonly<Record<string, Readonly<Record<string, boolean>>>>;
  expectedRoutes: number;
}>((row) => {
  const { sidecarConfig, virtualServiceConfigs = [], registryOnly } = row;
  const { routes } = tableResources(
    {
      services: TEST_SERVICES,
      configs: [...virtualServiceConfigs, ...(sidecarConfig === undefined ? [] : [sidecarConfig])],
      mesh: { outboundTrafficPolicy: { mode: registryOnly ? "REGISTRY_ONLY" : "ALLOW_ANY" } },
    },
    { configNamespace: HERE, dnsDomain: "default.example.org" },
  );
  const ours = routes.get(row.routeName);
  if (ours === undefined) return { leftOut: "no listener asks for the routes of a port that no service has" };
  const wanted = Object.entries(row.expectedHosts).map(([name, domains]) => [name, Object.keys(domains)] as const);
  const count = ours.virtualHosts.reduce((sum, { routes }) => sum + routes.length, 0);
  return firstOf([
    compareJson(domainsOf(ours), sorted(Object.fromEntries(wanted))),
    compareJson(count, row.expectedRoutes || wanted.length),
  ]);
});

const sharedDomains: RowCheck = byRow<{
  services: readonly ServiceDump[];
  config?: readonly KubernetesObject[];
  expectedHosts: Readonly<Record<string, readonly string[]>>;
  expectedDestination: Readonly<Record<string, string>>;
}>(({ services, config: configs = [], expectedHosts, expectedDestination }) => {
  const node = { configNamespace: "default", dnsDomain: "default.svc.cluster.local" };
  const ours = tableResources({ services, configs }, node).route("80");
  return firstOf([
    compareJson(domainsOf(ours), sorted(expectedHosts)),
    compareJson(Object.fromEntries(ours.virtualHosts.map((host) => [host.name, targetOf(host)])), expectedDestination),
  ]);
});

function targetOf({ routes: [route] }: VirtualHost): string | undefined {
  const specifier = route?.action.case === "route" ? route.action.value.clusterSpecifier : undefined;
  return specifier?.case === "cluster" ? specifier.value : undefined;
}

const gatewayRoutes: RowCheck = byRow<{
  gateways: readonly KubernetesObject[];
  virtualServices: readonly KubernetesObject[];
  routeName: string;
  redirect: boolean;
  expectStatefulSession: boolean;
  expectedVirtualHosts: Readonly<Record<string, readonly string[]>>;
  expectedHTTPRoutes: Readonly<Record<string, number>>;
}>((row) => {
  const node = { type: "router" as const, labels: { istio: "ingressgateway" } };
  const ours = tableResources({ configs: [...row.gateways, ...row.virtualServices] }, node).route(row.routeName);
  const redirects = ours.virtualHosts.map(({ requireTls }) => requireTls === VirtualHost_TlsRequirementType.ALL);
  return firstOf([
    compareJson(domainsOf(ours), sorted(row.expectedVirtualHosts)),
    compareJson(
      Object.fromEntries(ours.virtualHosts.map(({ name, routes }) => [name, routes.length])),
      row.expectedHTTPRoutes,
    ),
    compareJson(redirects.includes(true), row.redirect),
  ]);
});

/** Each route in a virtual service of its own, as they meet at a gateway. */
const order: RowCheck = byRow<{ in: readonly { match: JsonObject }[]; expected: readonly { match: JsonObject }[] }>(
  ({ in: given, expected }) => {
    const port = { number: 80, name: "http", protocol: "HTTP" };
    const gateway = networking("Gateway", { servers: [{ hosts: ["*"], port }] }, { name: "gateway" });
    const services = given.map((route, i) => {
      const http = [{ match: [conditionOf(route)], route: [{ destination: { host: "a.example.com" } }] }];
      const spec = { hosts: ["a.example.com"], gateways: ["gateway"], http };
      return networking("VirtualService", spec, { name: `route-${i}` });
    });
    const { virtualHosts } = tableResources({ configs: [gateway, ...services] }, { type: "router" }).route("http.80");
    const path = (value: unknown) => (typeof value === "string" ? value : (value as { readonly regex: string }).regex);
    const ours = virtualHosts[0]?.routes.map(({ match }) => path(match?.pathSpecifier.value));
    const wanted = expected.map(({ match: { path: exact, prefix, safeRegex } }) => path(exact ?? prefix ?? safeRegex));
    return compareJson(ours, wanted);
  },
);

interface PatchArgs {
  readonly cp: { readonly Match: { readonly routeConfiguration?: RouteConfigurationMatch } };
}

const CONTEXTS = { 2: "SIDECAR_OUTBOUND", 3: "GATEWAY" } as const;

const patchedRoutes: RowCheck = byRow<{
  args: PatchArgs & {
    rc?: { readonly name: string };
    patchContext: keyof typeof CONTEXTS;
    portMap?: Readonly<Record<string, readonly string[]>>;
  };
  want: boolean;
}>(({ args: { cp, rc, patchContext, portMap = {} }, want }) => {
  const ports = Object.entries(portMap).map(([port, called]) => [Number(port), new Set(called.map(Number))] as const);
  const place = { context: CONTEXTS[patchContext], servicePorts: new Map(ports) };
  return compareJson(matchesRoutes(cp.Match.routeConfiguration, rc?.name ?? "", place), want);
});

const patchedHost: RowCheck = byRow<{ args: PatchArgs & { vh?: JsonObject }; want: boolean }>(({ args, want }) => {
  const host = args.vh && fromJson(VirtualHostSchema, args.vh);
  return compareJson(matchesHost(args.cp.Match.routeConfiguration, host), want);
});

const patchedRoute: RowCheck = byRow<{ args: PatchArgs & { httpRoute?: JsonObject }; want: boolean }>(
  ({ args, want }) => {
    const route = args.httpRoute && fromJson(RouteSchema, args.httpRoute);
    return compareJson(matchesRoute(args.cp.Match.routeConfiguration, route), want);
  },
);

const placement: RowCheck = byRow<{
  input: readonly number[];
  applied: boolean;
  insertAfter: readonly number[];
  insertBefore: readonly number[];
  replace: readonly number[];
}>(({ input, insertAfter, insertBefore, replace }) => {
  const put = (operation: "INSERT_AFTER" | "INSERT_BEFORE" | "REPLACE") =>
    placed([...input], { operation, item: () => [10], names: (item) => item === 1 });
  return firstOf([
    compareJson(put("INSERT_AFTER"), insertAfter),
    compareJson(put("INSERT_BEFORE"), insertBefore),
    compareJson(put("REPLACE"), replace),
  ]);
});

export const generatedRouteFunctions: Readonly<Record<string, RowCheck>> = {
  translateMetadataMatch: claims,
  IsCatchAllRoute: catchAll,
  TranslateFault: fault,
  MirrorPercent: byRow<{ route: object; want?: object }>(({ route, want }) =>
    compareJson(mirrorOf({ ...route, mirror: COPY }), fractionOf(want)),
  ),
  MirrorPercentByPolicy: byRow<{ policy: object; want?: object }>(({ policy, want }) =>
    compareJson(mirrorOf({ mirrors: [{ ...policy, destination: COPY }] }), fractionOf(want)),
  ),
  sourceMatchHTTP: caller,
  buildSidecarOutboundHTTPRouteConfig: sidecarRoutes,
  "duplicate host handling": sharedDomains,
  buildGatewayHTTPRouteConfig: gatewayRoutes,
  routeConfigurationMatch: patchedRoutes,
  virtualHostMatch: patchedHost,
  routeMatch: patchedRoute,
  "filter list insert/replace helper": placement,
  SortVHostRoutes: order,
};

function fractionOf(want: object | undefined): unknown {
  const json = written(RouteAction_RequestMirrorPolicySchema, want && { runtimeFraction: want });
  return (json as { readonly runtimeFraction?: object } | undefined)?.runtimeFraction;
}
