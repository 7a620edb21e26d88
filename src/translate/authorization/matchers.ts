/** How the texts of a policy, with `*` in front or at the end, are matched by Envoy. */
import { quote } from "#config/kinds/authorization-policy/authorization-values.ts";
import type { HeaderMatcherSchema } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import type { MetadataMatcherSchema } from "#gen/envoy/type/matcher/v3/metadata_pb.ts";
import type { StringMatcherSchema } from "#gen/envoy/type/matcher/v3/string_pb.ts";
import type { ValueMatcherSchema } from "#gen/envoy/type/matcher/v3/value_pb.ts";
import { JWT_FILTER, JWT_PAYLOAD } from "../authentication/jwt-filter.ts";
import type { Init } from "../wire/encode.ts";

/** A match of text. */
export type Text = Init<typeof StringMatcherSchema>;
/** A match of a value among metadata. */
export type Value = Init<typeof ValueMatcherSchema>;
type Header = Init<typeof HeaderMatcherSchema>;
type Metadata = Init<typeof MetadataMatcherSchema>;

/** Any text but the empty one, which Envoy does not accept as a prefix. */
export const ANYTHING: Text = regex(".+");

/** Text that fits a regular expression as a whole. */
export function regex(pattern: string): Text {
  return { matchPattern: { case: "safeRegex", value: { regex: pattern } } };
}

/** Text that is equal. */
export function exact(value: string, ignoreCase = false): Text {
  return { ignoreCase, matchPattern: { case: "exact", value } };
}

/** Text that starts so. */
export function startsWith(value: string, ignoreCase = false): Text {
  return { ignoreCase, matchPattern: { case: "prefix", value } };
}

/** Text that ends so. */
export function endsWith(value: string, ignoreCase = false): Text {
  return { ignoreCase, matchPattern: { case: "suffix", value } };
}

/** A text of a policy: `*`, `*suffix`, `prefix*` or exact; `scheme` stands in front of what it is compared with. */
export function textMatcher(value: string, scheme = ""): Text {
  if (value === "*") return ANYTHING;
  if (value.startsWith("*")) {
    return scheme === "" ? endsWith(value.slice(1)) : regex(`${scheme}.*${quote(value.slice(1))}`);
  }
  return value.endsWith("*") ? startsWith(`${scheme}${value.slice(0, -1)}`) : exact(`${scheme}${value}`);
}

/** A header with such a text. `*` is any value, also an empty one. */
export function headerMatcher(name: string, value: string, ignoreCase = false): Header {
  if (value === "*") return { name, headerMatchSpecifier: { case: "presentMatch", value: true } };
  const text = value.startsWith("*")
    ? endsWith(value.slice(1), ignoreCase)
    : value.endsWith("*")
      ? startsWith(value.slice(0, -1), ignoreCase)
      : exact(value, ignoreCase);
  return { name, headerMatchSpecifier: { case: "stringMatch", value: text } };
}

/** What a filter left behind under a path of keys. */
export function metadataMatcher(filter: string, path: readonly string[], value: Value): Metadata {
  return { filter, path: path.map((key) => ({ segment: { case: "key", value: key } })), value };
}

/** A claim of the caller's token with such a value. */
export function claimMatcher(claim: string, value: Text): Metadata {
  return metadataMatcher(JWT_FILTER, [JWT_PAYLOAD, claim], textValue(value));
}

/** A claim, perhaps inside others, that is one of the texts or a list with one of them. */
export function claimListMatcher(claims: readonly string[], values: readonly string[]): Metadata {
  return claimValueMatcher(claims, anyOf(values.map((value) => textValue(textMatcher(value)))));
}

/** A claim, perhaps inside others, that is such a value or a list with one. */
export function claimValueMatcher(claims: readonly string[], value: Value): Metadata {
  return metadataMatcher(JWT_FILTER, [JWT_PAYLOAD, ...claims], anyOf([listWith(value), value]));
}

/** A value that is text. */
export function textValue(value: Text): Value {
  return { matchPattern: { case: "stringMatch", value } };
}

/** A list that has such a value. */
export function listWith(value: Value): Value {
  return { matchPattern: { case: "listMatch", value: { matchPattern: { case: "oneOf", value } } } };
}

/** One of the values. */
export function anyOf(values: readonly Value[]): Value {
  const [only] = values;
  if (only !== undefined && values.length === 1) return only;
  return { matchPattern: { case: "orMatch", value: { valueMatchers: [...values] } } };
}
