/** Conditions of a virtual service on requests. */

import { withoutTrailing } from "@mizzen/go-text/trim";
import type { HttpMatch, StringMatch } from "#config/kinds/virtual-service/schema.ts";
import type {
  HeaderMatcherSchema,
  QueryParameterMatcherSchema,
  RouteMatchSchema,
} from "#gen/envoy/config/route/v3/route_components_pb.ts";
import type { MetadataMatcherSchema } from "#gen/envoy/type/matcher/v3/metadata_pb.ts";
import type { StringMatcherSchema } from "#gen/envoy/type/matcher/v3/string_pb.ts";
import { compareText } from "#lib/text/compare-text.ts";
import { claimValueMatcher, textValue } from "../authorization/matchers.ts";
import type { Init } from "../wire/encode.ts";

type RouteMatch = Init<typeof RouteMatchSchema>;
type MetadataMatcher = Init<typeof MetadataMatcherSchema>;
type HeaderMatcher = Init<typeof HeaderMatcherSchema> & { readonly name: string };

/** What a prefix of a path means: any text, or whole parts between slashes. */
export type PrefixMeaning = "text" | "parts";

/** The condition of one route; without one every request is taken. */
export function routeMatch(match: HttpMatch | undefined, prefixMeaning: PrefixMeaning = "text"): RouteMatch {
  if (match === undefined) return { pathSpecifier: { case: "prefix", value: "/" } };
  return {
    pathSpecifier: pathSpecifier(match.uri, prefixMeaning),
    caseSensitive: match.ignoreUriCase !== true,
    headers: headerMatchers(match),
    dynamicMetadata: claimMatchers(match),
    queryParameters: entries(match.queryParams).map(([name, value]) => queryMatcher(name, value)),
  };
}

/** Whether some request can meet the condition. Envoy refuses parameters without a name, or with a name this long. */
export function canBeMet({ queryParams = {} }: HttpMatch): boolean {
  return Object.keys(queryParams).every((name) => name !== "" && name.length <= LONGEST_PARAMETER);
}

const LONGEST_PARAMETER = 1024;

/** Whether no request gets past the route, so that those after it are of no use. */
export function takesEveryRequest(match: HttpMatch | undefined): boolean {
  if (match === undefined) return true;
  const { uri, headers, withoutHeaders, queryParams, method, authority, scheme } = match;
  const anyPath = uri === undefined || isEmpty(uri) || uri.prefix === "/" || uri.regex === ".*";
  const conditions = [headers, withoutHeaders, queryParams].flatMap((map) => Object.keys(map ?? {}));
  return anyPath && conditions.length === 0 && method === undefined && authority === undefined && scheme === undefined;
}

/** How the condition on the path is written in the name of a trace. */
export function pathInTrace(match: HttpMatch | undefined, prefixMeaning: PrefixMeaning = "text"): string {
  const { case: kind, value } = pathSpecifier(match?.uri, prefixMeaning);
  if (kind === "path") return value;
  if (kind === "safeRegex") return value.regex ?? "";
  return kind === "prefix" ? `${value}*` : "/*";
}

type PathSpecifier = Extract<
  RouteMatch["pathSpecifier"],
  { case: "path" | "prefix" | "safeRegex" | "pathSeparatedPrefix" }
>;

function pathSpecifier(uri: StringMatch | undefined, prefixMeaning: PrefixMeaning): PathSpecifier {
  if (uri?.exact !== undefined) return { case: "path", value: uri.exact };
  if (uri?.regex !== undefined) return { case: "safeRegex", value: { regex: uri.regex } };
  const prefix = uri?.prefix ?? "/";
  const parts = withoutTrailing(prefix, "/");
  if (prefixMeaning === "parts" && WHOLE_PARTS.test(parts)) return { case: "pathSeparatedPrefix", value: parts };
  return { case: "prefix", value: prefix };
}

/** What Envoy takes as whole parts of a path. */
const WHOLE_PARTS = /^[^?#]+[^?#/]$/;

/** Conditions that look like headers, but are about claims of the token that was checked before. */
function claimMatchers({ headers, withoutHeaders }: HttpMatch): MetadataMatcher[] {
  const matchers = (map: HttpMatch["headers"], invert: boolean) =>
    entries(map).flatMap(([name, value]) => {
      const claims = claimPath(name);
      return claims === undefined ? [] : [{ ...claimMatcher(claims, value), invert }];
    });
  return [...matchers(headers, false), ...matchers(withoutHeaders, true)];
}

function claimMatcher(claims: readonly string[], value: StringMatch): MetadataMatcher {
  const present = { matchPattern: { case: "presentMatch", value: true } } as const;
  return claimValueMatcher(claims, asksPresence(value) ? present : textValue(stringMatcher(value)));
}

/** `@request.auth.claims.a.b` or, where names have dots, `@request.auth.claims[a][b]`; undefined for a plain header. */
export function claimPath(header: string): readonly string[] | undefined {
  const [, path] = /^@request\.auth\.claims(.*)$/is.exec(header) ?? [];
  if (path === undefined || path.length < 2) return undefined;
  if (path.startsWith(".")) return path.slice(1).split(".");
  return /^\[.+\]$/s.test(path) ? path.slice(1, -1).split("][") : undefined;
}

function headerMatchers(match: HttpMatch): HeaderMatcher[] {
  const named = [
    ...headerEntries(match.headers).map(([name, value]) => headerMatcher(name, value)),
    ...headerEntries(match.withoutHeaders).map(([name, value]) => ({
      ...headerMatcher(name, value),
      invertMatch: true,
      // A header that is not there does not have the value; whether it is there is asked without a value.
      ...(!asksPresence(value) && { treatMissingHeaderAsEmpty: true }),
    })),
  ].sort((a, b) => compareText(a.name, b.name));
  const pseudo = [
    [":method", match.method],
    [":authority", match.authority],
    [":scheme", match.scheme],
  ] as const;
  const set = pseudo.flatMap(([name, value]) => (value === undefined ? [] : [headerMatcher(name, value)]));
  return [...named, ...set];
}

function headerMatcher(name: string, value: StringMatch): HeaderMatcher {
  if (asksPresence(value)) return { name, headerMatchSpecifier: { case: "presentMatch", value: true } };
  return { name, headerMatchSpecifier: { case: "stringMatch", value: stringMatcher(value) } };
}

function queryMatcher(name: string, value: StringMatch): Init<typeof QueryParameterMatcherSchema> {
  if (asksPresence(value)) return { name, queryParameterMatchSpecifier: { case: "presentMatch", value: true } };
  return { name, queryParameterMatchSpecifier: { case: "stringMatch", value: stringMatcher(value) } };
}

/** No value, or the pattern `*`, which is no regular expression, asks only whether it is there. */
function asksPresence(value: StringMatch): boolean {
  return isEmpty(value) || value.regex === "*";
}

function isEmpty({ exact, prefix, regex }: StringMatch): boolean {
  return exact === undefined && prefix === undefined && regex === undefined;
}

/** Envoy's form of a condition on text. */
export function stringMatcher({ exact, prefix, regex }: StringMatch): Init<typeof StringMatcherSchema> {
  if (exact !== undefined) return { matchPattern: { case: "exact", value: exact } };
  if (prefix !== undefined) return { matchPattern: { case: "prefix", value: prefix } };
  return { matchPattern: { case: "safeRegex", value: { regex: regex ?? "" } } };
}

function headerEntries(map: HttpMatch["headers"]): [string, StringMatch][] {
  return entries(map).filter(([name]) => claimPath(name) === undefined);
}

function entries<T>(map: Readonly<Record<string, T>> | undefined): [string, T][] {
  return Object.entries(map ?? {}).sort(([a], [b]) => compareText(a, b));
}
