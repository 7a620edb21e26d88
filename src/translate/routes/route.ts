/** One route of a virtual service. */

import type { ConsistentHash } from "#config/kinds/destination-rule/schema.ts";
import type {
  HttpMatch,
  HttpMirror,
  HttpRedirect,
  HttpRetry,
  HttpRoute,
  VirtualService,
} from "#config/kinds/virtual-service/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { hasIngressSemantics } from "#config/terms/ingress-semantics.ts";
import {
  type RedirectActionSchema,
  RedirectAction_RedirectResponseCode as RedirectCode,
  type RouteAction_RequestMirrorPolicySchema,
  type RouteActionSchema,
  type RouteSchema,
  type WeightedCluster_ClusterWeightSchema,
} from "#gen/envoy/config/route/v3/route_components_pb.ts";
import type { Session } from "#model/service/service.ts";
import { sessionSettings } from "../filters/session.ts";
import { configOrigin } from "../names/metadata.ts";
import { parseClusterName, traceOperation } from "../names/names.ts";
import type { VersionedField } from "../traits/capabilities.ts";
import { duration, type Init } from "../wire/encode.ts";
import { isHeaderText } from "../wire/header-text.ts";
import { fittingWeights } from "../wire/weights.ts";
import { hashPolicy } from "./hash-policy.ts";
import { authorityOf, type HeaderChanges, headerChanges, NO_CHANGES } from "./headers.ts";
import { pathInTrace, routeMatch } from "./match.ts";
import { filterSettings, fraction, wholePercent } from "./per-filter.ts";
import { retryPolicy } from "./retry.ts";

type Route = Init<typeof RouteSchema>;
type RouteAction = Init<typeof RouteActionSchema>;
type Mirror = Init<typeof RouteAction_RequestMirrorPolicySchema>;

/** What a route needs besides itself. */
export interface RouteContext {
  readonly virtualService: ConfigObject<VirtualService>;
  /** The port that was called. */
  readonly port: number;
  readonly isTls: boolean;
  /** Retries where the route says nothing. */
  readonly retries: HttpRetry | undefined;
  readonly xForwardedHost: boolean;
  readonly offersHttp3: boolean;
  /** Clusters of the route's destinations, in the order of `httpDestinations`. */
  readonly clusters: readonly string[];
  /** How each of them is hashed, in the same order; empty when none is. */
  readonly hashes: readonly (ConsistentHash | undefined)[];
  /** How its requests stay with one endpoint. */
  readonly session?: Session | undefined;
  /** Hosts of mirrored requests get a suffix. */
  readonly shadowSuffix: boolean;
  /** Fields that the proxy's Envoy does not have. */
  readonly lackedFields: readonly VersionedField[];
}

/** The route under one of its conditions; undefined when Envoy could do nothing with it. */
export function routeOf(route: HttpRoute, match: HttpMatch | undefined, context: RouteContext): Route | undefined {
  const action = actionOf(route, context);
  if (action === undefined) return undefined;
  const settings = { ...filterSettings(route, context.lackedFields), ...sessionSettings(context.session) };
  const name = match?.name ? `${route.name ?? ""}.${match.name}` : (route.name ?? "");
  const cluster = action.case === "route" ? action.value.clusterSpecifier : undefined;
  const prefixMeaning = hasIngressSemantics(context.virtualService) ? "parts" : "text";
  return {
    ...(name !== "" && { name }),
    match: routeMatch(match, prefixMeaning),
    action,
    ...(context.offersHttp3 ? withOffer(changesOf(route), context.port) : changesOf(route)),
    metadata: { filterMetadata: { istio: { config: configOrigin(context.virtualService) } } },
    decorator: {
      operation: operationOf(
        cluster?.case === "cluster" ? cluster.value : "",
        pathInTrace(match, prefixMeaning),
        context,
      ),
    },
    ...(match?.statPrefix && { statPrefix: match.statPrefix }),
    ...(Object.keys(settings).length > 0 && { typedPerFilterConfig: settings }),
  };
}

/** Clients that know HTTP/3 remember the offer for a day. */
function withOffer(changes: Partial<HeaderChanges>, port: number): Partial<HeaderChanges> {
  const offer = { header: { key: "alt-svc", value: `h3=":${port}"; ma=86400` } };
  return { ...changes, responseHeadersToAdd: [...(changes.responseHeadersToAdd ?? []), offer] };
}

/** A trace is named by the one destination, or by the virtual service when there are several. */
function operationOf(cluster: string, path: string, { virtualService, port }: RouteContext): string {
  const target = parseClusterName(cluster);
  if (target === undefined) return traceOperation(virtualService.metadata.name, port, path);
  return traceOperation(target.hostname, target.port, path);
}

/** The changes of a single destination come after those of the route. Several have them at their weight. */
function changesOf(route: HttpRoute): Partial<HeaderChanges> {
  const isForwarded = route.redirect === undefined && route.directResponse === undefined;
  const [only] = isForwarded && route.route?.length === 1 ? route.route : [];
  const [first, second] = [route.headers, only?.headers].map((headers) => headers && headerChanges(headers));
  if (first === undefined && second === undefined) return {};
  const [a, b] = [first ?? NO_CHANGES, second ?? NO_CHANGES];
  return {
    requestHeadersToAdd: [...a.requestHeadersToAdd, ...b.requestHeadersToAdd],
    requestHeadersToRemove: [...a.requestHeadersToRemove, ...b.requestHeadersToRemove],
    responseHeadersToAdd: [...a.responseHeadersToAdd, ...b.responseHeadersToAdd],
    responseHeadersToRemove: [...a.responseHeadersToRemove, ...b.responseHeadersToRemove],
  };
}

function actionOf(route: HttpRoute, context: RouteContext): Extract<Route["action"], { case: string }> | undefined {
  if (route.redirect !== undefined) {
    const value = redirectOf(route.redirect, context);
    return value && { case: "redirect", value };
  }
  if (route.directResponse !== undefined) {
    const { status, body } = route.directResponse;
    if (status < 200 || status > 599) return undefined;
    const specifier =
      body?.bytes === undefined
        ? { case: "inlineString" as const, value: body?.string ?? "" }
        : { case: "inlineBytes" as const, value: Buffer.from(body.bytes, "base64") };
    return { case: "directResponse", value: { status, ...(body && { body: { specifier } }) } };
  }
  const value = forwardOf(route, context);
  return value && { case: "route", value };
}

function forwardOf(route: HttpRoute, context: RouteContext): RouteAction | undefined {
  const destinations = route.route ?? [];
  const clusterSpecifier = clusterSpecifierOf(route, context);
  const { uri = "", authority = "" } = route.rewrite ?? {};
  if (clusterSpecifier === undefined || !isHeaderText(uri) || !isHeaderText(authority)) return undefined;
  const timeout = duration(route.timeout ?? 0);
  const retries = retryPolicy(
    route.retries ?? context.retries,
    destinations.length === 1 && context.hashes[0] !== undefined,
  );
  // Of several destinations those without weight are none.
  const used = destinations.map(({ weight = 0 }) => destinations.length === 1 || weight > 0);
  const hashed = context.hashes.flatMap((hash, i) => (used[i] && hashPolicy(hash)) || []);
  const mirrors = mirrorsOf(route, context);
  return {
    clusterSpecifier,
    timeout,
    maxGrpcTimeout: timeout,
    ...rewriteOf(route, context),
    ...(retries && { retryPolicy: retries }),
    ...(hashed.length > 0 && { hashPolicy: hashed }),
    ...(mirrors.length > 0 && { requestMirrorPolicies: mirrors }),
  };
}

function clusterSpecifierOf(
  { route: destinations = [] }: HttpRoute,
  { clusters }: RouteContext,
): Extract<RouteAction["clusterSpecifier"], { case: string }> | undefined {
  if (destinations.length === 1) return { case: "cluster", value: clusters[0] ?? "" };
  const weights = fittingWeights(destinations.map(({ weight = 0 }) => weight));
  const weighted = destinations.flatMap(({ weight: wanted = 0, headers }, i) => {
    if (wanted <= 0) return [];
    const authority = authorityOf(headers);
    const cluster: Init<typeof WeightedCluster_ClusterWeightSchema> = {
      name: clusters[i] ?? "",
      weight: weights[i] ?? wanted,
      ...(headers && headerChanges(headers)),
      ...(authority !== undefined && { hostRewriteSpecifier: { case: "hostRewriteLiteral", value: authority } }),
    };
    return [cluster];
  });
  return weighted.length === 0 ? undefined : { case: "weightedClusters", value: { clusters: weighted } };
}

function rewriteOf(route: HttpRoute, { xForwardedHost }: RouteContext): RouteAction {
  const { rewrite } = route;
  const [only] = route.route?.length === 1 ? route.route : [];
  const authority = rewrite?.authority || authorityOf(route.headers) || authorityOf(only?.headers);
  const regex = rewrite?.uriRegexRewrite;
  return {
    ...(regex !== undefined && {
      regexRewrite: { pattern: { regex: regex.match ?? "" }, substitution: regex.rewrite ?? "" },
    }),
    ...(regex === undefined && rewrite?.uri && { prefixRewrite: rewrite.uri }),
    ...(rewrite !== undefined && xForwardedHost && { appendXForwardedHost: true }),
    ...(authority && { hostRewriteSpecifier: { case: "hostRewriteLiteral", value: authority } }),
  };
}

/** Copies are sent aside; zero percent means none. */
function mirrorsOf(route: HttpRoute, { clusters, shadowSuffix, lackedFields }: RouteContext): Mirror[] {
  const field = "RequestMirrorPolicy.disable_shadow_host_suffix_append";
  const keepsHost = !shadowSuffix && !lackedFields.includes(field);
  const first = (route.route ?? []).length;
  const single = route.mirror === undefined ? [] : [singleShare(route)];
  const shares = [...single, ...(route.mirrors ?? []).map(({ percentage }) => shareOf(percentage))];
  return shares.flatMap((share, i) => {
    if (share === undefined) return [];
    return [
      {
        cluster: clusters[first + i] ?? "",
        runtimeFraction: { defaultValue: share },
        traceSampled: false,
        ...(keepsHost && { disableShadowHostSuffixAppend: true }),
      },
    ];
  });
}

function singleShare({ mirrorPercentage, mirrorPercent }: HttpRoute): ReturnType<typeof shareOf> {
  if (mirrorPercentage !== undefined || mirrorPercent === undefined) return shareOf(mirrorPercentage);
  return mirrorPercent > 0 ? wholePercent(mirrorPercent) : undefined;
}

function shareOf(percentage: HttpMirror["percentage"]) {
  if (percentage === undefined) return wholePercent(100);
  return (percentage.value ?? 0) > 0 ? fraction(percentage) : undefined;
}

const REDIRECT_CODES: Readonly<Record<number, RedirectCode>> = {
  0: RedirectCode.MOVED_PERMANENTLY,
  301: RedirectCode.MOVED_PERMANENTLY,
  302: RedirectCode.FOUND,
  303: RedirectCode.SEE_OTHER,
  307: RedirectCode.TEMPORARY_REDIRECT,
  308: RedirectCode.PERMANENT_REDIRECT,
};

function redirectOf(redirect: HttpRedirect, context: RouteContext): Init<typeof RedirectActionSchema> | undefined {
  const responseCode = REDIRECT_CODES[redirect.redirectCode ?? 0];
  const isText = isHeaderText(redirect.uri ?? "") && isHeaderText(redirect.authority ?? "");
  if (responseCode === undefined || !isText) return undefined;
  const port = redirectPort(redirect, context);
  return {
    responseCode,
    ...(redirect.authority && { hostRedirect: redirect.authority }),
    pathRewriteSpecifier: { case: "pathRedirect", value: redirect.uri ?? "" },
    ...(redirect.scheme && { schemeRewriteSpecifier: { case: "schemeRedirect", value: redirect.scheme } }),
    ...(port > 0 && { portRedirect: port }),
  };
}

/** The usual port of a scheme is not written. */
function redirectPort(redirect: HttpRedirect, { port: called, isTls }: RouteContext): number {
  const wanted = redirect.port ?? (redirect.derivePort === "FROM_REQUEST_PORT" ? called : 0);
  const scheme = redirect.scheme || (isTls ? "https" : "http");
  return wanted === { http: 80, https: 443 }[scheme] ? 0 : wanted;
}
