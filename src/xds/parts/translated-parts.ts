/** What proxies are sent: the plans of translation, as parts by view. */
import { atOnce, type Steps } from "#lib/async/steps.ts";
import { keptBy } from "#lib/collections/kept-by.ts";
import { inCluster } from "#model/in-cluster.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  EXTENSION_TYPE,
  LISTENER_TYPE,
  NAME_TABLE_TYPE,
  ROUTE_TYPE,
  SECRET_TYPE,
} from "#protocol/messages/type-urls.ts";
import {
  type GrpcView,
  planGrpcCluster,
  planGrpcEndpoints,
  planGrpcListener,
  planGrpcRoutes,
} from "#translate/grpc/plan.ts";
import { planEndpoints, planGatewaySteps, planInbound, planNameTable, planOutboundSteps } from "#translate/plan.ts";
import type { Plan } from "#translate/recipes/view-plan.ts";
import { publicPart, seenBy } from "#translate/scope/public-part.ts";
import { planSecret, type SecretRights, type SecretsView, secretsView } from "#translate/secrets/plan.ts";
import { changedEndpoints, haveSamePlans } from "#translate/views/unchanged.ts";
import { type EndpointsView, type ProxyViews, viewsOf } from "#translate/views/views.ts";
import type { Part, PartByName, PartPlan, PartsOf, ProxyParts } from "./parts.ts";

/** With secrets for everybody of their namespace. */
export const translatedParts: PartsOf = (snapshot, proxy) => partsFor(snapshot, proxy);

/** With secrets for those accounts only that have a right to them. */
export function translatedPartsWith(rights: SecretRights): PartsOf {
  return (snapshot, proxy) => partsFor(snapshot, proxy, rights);
}

/** By snapshot and the keys of all views: proxies of the same views have the same parts, if nothing is left out for them. */
const shared = new WeakMap<Snapshot, Map<string, ProxyParts>>();

function sharedParts(snapshot: Snapshot, views: ProxyViews): ProxyParts {
  if (views.omittedListeners.size > 0) return envoyParts(snapshot, views);
  return keptBy(shared, snapshot, keyOf(views), () => envoyParts(snapshot, views));
}

const keys = new WeakMap<ProxyViews, string>();

/** Of all views together; a proxy keeps them from one snapshot to the next. */
function keyOf(views: ProxyViews): string {
  const known = keys.get(views);
  if (known !== undefined) return known;
  const { outbound, inbound, gateway, endpoints, names } = views;
  const key = `${outbound.key} ${inbound?.key} ${gateway?.key} ${endpoints.key} ${names.key}`;
  keys.set(views, key);
  return key;
}

/** What is sent depends on who reads it: Envoy, or a program that speaks xDS itself. */
function partsFor(whole: Snapshot, proxy: MeshProxy, rights?: SecretRights): ProxyParts {
  const snapshot = seenBy(proxy, inCluster(whole, String(proxy.metadata.CLUSTER_ID ?? "")));
  const views = viewsOf(snapshot, proxy);
  const { outbound, inbound, isMutualTls } = views;
  if (proxy.metadata.GENERATOR !== "grpc" || inbound === undefined) {
    const parts = sharedParts(snapshot, views);
    const secrets = secretsView(proxy, snapshot.mesh, rights);
    return secrets === undefined ? parts : withSecrets(parts, snapshot, secrets);
  }
  return grpcParts(snapshot, views, { outbound, inbound, isMutualTls });
}

/** A sidecar has what its workload calls and what calls its workload; a router what it calls and what its Gateways say. */
function envoyParts(snapshot: Snapshot, views: ProxyViews): ProxyParts {
  const { outbound, inbound, gateway, endpoints, names, omittedListeners } = views;
  const part = ({ key }: { readonly key: string }, plan: () => Steps<PartPlan>): Part => ({
    key,
    plan,
    isSameSince: (before) => haveSamePlans("", likewise(before, snapshot), snapshot),
  });
  const parts = [
    part(outbound, () => byType(planOutboundSteps(snapshot, outbound))),
    ...(inbound === undefined ? [] : [part(inbound, () => byType(atOnce(planInbound(snapshot, inbound))))]),
    ...(gateway === undefined ? [] : [part(gateway, () => byType(planGatewaySteps(snapshot, gateway)))]),
  ];
  const nameTable = part(names, () => atOnce(new Map([[NAME_TABLE_TYPE, [planNameTable(snapshot, names)]]])));
  return {
    types: new Map([
      [CLUSTER_TYPE, parts],
      [LISTENER_TYPE, parts],
      [ROUTE_TYPE, parts],
      [EXTENSION_TYPE, parts],
      [NAME_TABLE_TYPE, [nameTable]],
    ]),
    asked: new Map([[ENDPOINT_TYPE, endpointsPart(snapshot, endpoints)]]),
    omittedListeners,
  };
}

/** What of an older snapshot is to be compared with a newer one of which the proxy sees only a part. */
function likewise(before: Snapshot, { onlyPublic }: Snapshot): Snapshot {
  return onlyPublic === true ? publicPart(before) : before;
}

/** By the key of what proxies may read: who has the same parts beside that has the same ones with it. */
const sharedWithSecrets = new WeakMap<ProxyParts, Map<string, ProxyParts>>();

function withSecrets(parts: ProxyParts, snapshot: Snapshot, view: SecretsView): ProxyParts {
  return keptBy(sharedWithSecrets, parts, view.key, () => {
    const secrets: PartByName = { key: view.key, plan: (name) => planSecret(snapshot, view, name) };
    return { ...parts, asked: new Map(parts.asked).set(SECRET_TYPE, secrets) };
  });
}

/** Everything by name. */
function grpcParts(snapshot: Snapshot, { endpoints }: ProxyViews, view: GrpcView): ProxyParts {
  const { outbound, inbound, isMutualTls } = view;
  const all = `${outbound.key} ${inbound.key} ${isMutualTls}`;
  return {
    types: new Map(),
    asked: new Map([
      [LISTENER_TYPE, { key: `grpc listeners ${all}`, plan: (name) => planGrpcListener(snapshot, view, name) }],
      [ROUTE_TYPE, { key: `grpc routes ${outbound.key}`, plan: (name) => planGrpcRoutes(snapshot, view, name) }],
      [CLUSTER_TYPE, { key: `grpc clusters ${outbound.key}`, plan: (name) => planGrpcCluster(snapshot, view, name) }],
      [ENDPOINT_TYPE, grpcEndpointsPart(snapshot, endpoints)],
    ]),
    omittedListeners: NO_NAMES,
  };
}

const NO_NAMES: ReadonlySet<string> = new Set();

function endpointsPart(snapshot: Snapshot, view: EndpointsView): PartByName {
  return {
    key: view.key,
    plan: (cluster) => planEndpoints(snapshot, view, cluster),
    changedSince: (before) => changedEndpoints(likewise(before, snapshot), snapshot, view),
  };
}

function grpcEndpointsPart(snapshot: Snapshot, view: EndpointsView): PartByName {
  const plan = (cluster: string) => planGrpcEndpoints(snapshot, view, cluster);
  return { ...endpointsPart(snapshot, view), key: `grpc endpoints ${view.key}`, plan };
}

function* byType(plan: Steps<Plan>): Steps<PartPlan> {
  const { clusters, listeners, routes, extensions } = yield* plan;
  return new Map([
    [CLUSTER_TYPE, clusters],
    [LISTENER_TYPE, listeners],
    [ROUTE_TYPE, routes],
    [EXTENSION_TYPE, extensions],
  ]);
}
