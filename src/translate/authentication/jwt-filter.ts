/**
 * The filter that checks tokens of end users. A token that is there has to be good; none at all is fine: whether one is
 * needed is up to authorization, which sees the claims that are left here.
 */
import { create } from "@bufbuild/protobuf";
import type { JwtRule } from "#config/kinds/request-authentication/schema.ts";
import {
  JwtAuthenticationSchema,
  type JwtProviderSchema,
  type JwtRequirementSchema,
} from "#gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.ts";
import {
  type HttpFilter,
  HttpFilterSchema,
} from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { spaceDelimitedClaims } from "#model/identity/token-claims.ts";
import { duration, type Init, pack } from "../wire/encode.ts";

/** The name of the filter, under which it leaves what it found. */
export const JWT_FILTER = "envoy.filters.http.jwt_authn";
/** The key under which it leaves the claims. */
export const JWT_PAYLOAD = "payload";

const DEFAULT_TIMEOUT_MS = 5_000;
/** How long Envoy keeps keys that it fetches itself. */
const CACHE_MS = 300_000;

/** What the filter depends on. The lists go side by side; in each place either `jwtKeys` or `jwtClusters` is not empty. */
export interface JwtInput {
  /** By issuer. */
  readonly jwtRules: readonly JwtRule[];
  /** The keys of each rule in JSON. */
  readonly jwtKeys: readonly string[];
  /** The cluster from which Envoy fetches the keys of each rule. */
  readonly jwtClusters: readonly string[];
}

/** The filter; undefined without rules. Where claims decide about routes (`reroutes`) the route is chosen again after it. */
export function jwtFilter(input: JwtInput, reroutes: boolean): HttpFilter | undefined {
  const { jwtRules, jwtKeys, jwtClusters } = input;
  if (jwtRules.length === 0) return undefined;
  const providers = jwtRules.map((rule, i) => ({
    ...provider(rule, { jwks: jwtKeys[i] ?? "", cluster: jwtClusters[i] ?? "" }),
    clearRouteCache: reroutes,
  }));
  const named = providers.map((one, i): [string, Provider] => [providerName(i), one]);
  const typedConfig = pack(JwtAuthenticationSchema, {
    providers: Object.fromEntries(named),
    rules: [
      {
        match: { pathSpecifier: { case: "prefix", value: "/" } },
        requirementType: { case: "requires", value: requirement(named.map(([name]) => name)) },
      },
    ],
    // A browser asks whether it may send a token before it sends one.
    bypassCorsPreflight: true,
  });
  return create(HttpFilterSchema, { name: JWT_FILTER, configType: { case: "typedConfig", value: typedConfig } });
}

type Provider = Init<typeof JwtProviderSchema>;
type Requirement = Init<typeof JwtRequirementSchema>;

function providerName(index: number): string {
  return `origins-${index}`;
}

function provider(rule: JwtRule, keys: { readonly jwks: string; readonly cluster: string }): Provider {
  const { issuer = "", audiences = [], fromHeaders = [], fromParams = [], fromCookies = [] } = rule;
  const { forwardOriginalToken = false, outputPayloadToHeader = "", outputClaimToHeaders = [] } = rule;
  return {
    issuer,
    audiences: [...audiences],
    forward: forwardOriginalToken,
    forwardPayloadHeader: outputPayloadToHeader,
    payloadInMetadata: JWT_PAYLOAD,
    normalizePayloadInMetadata: { spaceDelimitedClaims: [...spaceDelimitedClaims(rule.spaceDelimitedClaims)] },
    claimToHeaders: outputClaimToHeaders.map(({ header, claim }) => ({ headerName: header, claimName: claim })),
    fromHeaders: fromHeaders.map(({ name, prefix = "" }) => ({ name, valuePrefix: prefix })),
    fromParams: [...fromParams],
    fromCookies: [...fromCookies],
    jwksSourceSpecifier: keySource(rule, keys),
  };
}

function keySource(
  { jwksUri: uri = "", timeout = DEFAULT_TIMEOUT_MS }: JwtRule,
  { jwks, cluster }: { readonly jwks: string; readonly cluster: string },
): NonNullable<Provider["jwksSourceSpecifier"]> {
  if (cluster === "") return { case: "localJwks", value: { specifier: { case: "inlineString", value: jwks } } };
  const httpUpstreamType = { case: "cluster", value: cluster } as const;
  return {
    case: "remoteJwks",
    value: { httpUri: { uri, httpUpstreamType, timeout: duration(timeout) }, cacheDuration: duration(CACHE_MS) },
  };
}

/**
 * One issuer: its token or none. Several: the token of one of them, or for each of them its token or none. The first part
 * is for issuers whose tokens come in the same place, where the token of one is a bad one for all the others.
 */
function requirement(names: readonly string[]): Requirement {
  const tokens = names.map((value): Requirement => ({ requiresType: { case: "providerName", value } }));
  const orNone = tokens.map((token) => anyOf([token, { requiresType: { case: "allowMissing", value: {} } }]));
  const [only] = orNone;
  if (only !== undefined && orNone.length === 1) return only;
  return anyOf([...tokens, { requiresType: { case: "requiresAll", value: { requirements: orNone } } }]);
}

function anyOf(requirements: readonly Requirement[]): Requirement {
  return { requiresType: { case: "requiresAny", value: { requirements: [...requirements] } } };
}
