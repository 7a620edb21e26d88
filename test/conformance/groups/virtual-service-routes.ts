/** One VirtualService to the ordered routes of a port. */
import { fromBinary } from "@bufbuild/protobuf";
import { type ConsistentHash, destinationRuleSchema } from "#config/kinds/destination-rule/schema.ts";
import { httpDestinations } from "#config/kinds/virtual-service/destinations.ts";
import { completeGateway } from "#config/kinds/virtual-service/gateway-name.ts";
import { type VirtualService, virtualServiceSchema } from "#config/kinds/virtual-service/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { parse } from "#config/schema/parse.ts";
import { completeHost } from "#config/terms/host.ts";
import { VirtualHostSchema } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import { applicableRoutes, routeLists } from "#translate/routes/applicable.ts";
import { routedHost } from "#translate/routes/virtual-host.ts";
import type { BoundVirtualService } from "#translate/scope/virtual-services.ts";
import { viewsOf } from "#translate/views/views.ts";
import { compareJson } from "../compare.ts";
import { type Group, type Outcome, readJson } from "../harness.ts";
import type { KubernetesObject } from "../kubernetes-mesh.ts";
import { type NodeDump, recordedProxy } from "../recorded.ts";
import { dumpedService, recordedMesh, type ServiceDump } from "../recorded-mesh.ts";
import { formatResource, messageType, parseResource, throughBytes } from "../resources.ts";

interface RouteCase {
  readonly name: string;
  readonly virtualService: KubernetesObject & { readonly spec: object };
  readonly proxy: NodeDump;
  readonly services: Readonly<Record<string, ServiceDump>>;
  readonly consistentHash: readonly { readonly consistentHash: object; readonly route: { destination: object } }[];
  readonly gatewayNames: readonly string[];
  readonly listenPort: number;
  readonly isTLS: boolean;
  readonly http3AltSvc: boolean;
  readonly mesh?: object;
  readonly routes?: readonly unknown[];
}

export const virtualServiceRoutes: Group = {
  name: "virtual service routes",
  cases: async (folder) => {
    const path = "pilot/pkg/networking/core/route/cases.json";
    const file = await readJson<{ readonly cases: readonly RouteCase[] }>(folder, path);
    return (file?.cases ?? []).map((one) => ({ name: one.name, check: () => check(one) }));
  },
};

function check(one: RouteCase): Outcome {
  if ((one.routes ?? []).some((route) => !doesSomething(route))) {
    return { leftOut: "Istio makes a route that does nothing, which Envoy refuses; ours leaves it out" };
  }
  const snapshot = recordedMesh({ configs: [one.virtualService], ...(one.mesh && { meshConfig: one.mesh }) });
  if ("leftOut" in snapshot) return snapshot;
  const { outbound } = viewsOf(snapshot, recordedProxy(one.proxy));
  const bound = boundOf(one);
  const lists = routeLists(
    applicableRoutes(snapshot, bound, {
      view: outbound,
      gateway: completeGateway(one.gatewayNames[0] ?? "", bound.object.metadata.namespace),
      port: one.listenPort,
      serviceOf: (hostname) => {
        const dump = one.services[hostname];
        return dump && dumpedService(dump);
      },
      prefersOnlyPort: true,
    }),
  );
  const bytes = routedHost({
    ...lists,
    hashes: lists.routes.flatMap(httpDestinations).map((destination) => hashOf(one, destination)),
    name: "",
    domains: [],
    attemptCount: false,
    port: one.listenPort,
    isTls: one.isTLS,
    requiresTls: false,
    retries: snapshot.mesh.defaultHttpRetryPolicy,
    offersHttp3: one.http3AltSvc,
    xForwardedHost: outbound.traits.http.headers.xForwardedHost?.enabled === true,
  });
  const type = messageType("envoy.config.route.v3.Route");
  const ours = fromBinary(VirtualHostSchema, bytes).routes.map((route) => formatResource(type, route));
  const wanted = (one.routes ?? []).map((json) => throughBytes(type, parseResource(type, json)));
  return compareJson(ours, wanted);
}

function doesSomething(route: unknown): boolean {
  return ["route", "redirect", "directResponse"].some((action) => Object.hasOwn(Object(route), action));
}

/** Read without checks: some cases hold what no user may write. */
function boundOf({ virtualService }: RouteCase): BoundVirtualService {
  const { kind, metadata, spec: raw } = virtualService;
  const { name, namespace = "", labels = {} } = metadata;
  const { value: spec, problems } = parse(virtualServiceSchema, raw, "spec");
  if (spec === undefined) throw new Error(JSON.stringify(problems));
  const object: ConfigObject<VirtualService> = {
    kind,
    metadata: { name, namespace, labels, annotations: {}, createdAt: 0 },
    spec,
    origin: undefined,
  };
  const hosts = (spec.hosts ?? []).map((host) => completeHost(host, namespace, ""));
  const gateways = (spec.gateways ?? []).map((gateway) => completeGateway(gateway, namespace));
  return { object, hosts, gateways, domain: "" };
}

/** How the destination's rule says that endpoints are chosen; rules themselves are not part of the data. */
function hashOf({ consistentHash }: RouteCase, destination: object): ConsistentHash | undefined {
  const wanted = JSON.stringify(destination, sorted);
  const found = consistentHash.find(({ route }) => JSON.stringify(route.destination, sorted) === wanted);
  const rule = { host: "a", trafficPolicy: { loadBalancer: found && { consistentHash: found.consistentHash } } };
  return parse(destinationRuleSchema, rule, "").value?.trafficPolicy?.loadBalancer?.consistentHash;
}

function sorted(_key: string, value: unknown): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
