/**
 * The attributes a rule may look at, and what each is in Envoy: a permission (what is asked for) or a principal (who asks).
 * Those of HTTP alone cannot be told from a TCP connection.
 */

import { withoutEnds } from "@mizzen/go-text/trim";
import {
  accountPattern,
  claimPath,
  isPathTemplate,
  type Meaning,
  namespacePattern,
  parseConditionKey,
  SPIFFE,
} from "#config/kinds/authorization-policy/authorization-values.ts";
import type { PermissionSchema, PrincipalSchema } from "#gen/envoy/config/rbac/v3/rbac_pb.ts";
import { UriTemplateMatchConfigSchema } from "#gen/envoy/extensions/path/match/uri_template/v3/uri_template_match_pb.ts";
import { parseRequestPrincipal, type TextPattern } from "#model/identity/request-principal.ts";
import { withAliases } from "#model/identity/trust-domain.ts";
import { literalRange } from "../wire/cidr.ts";
import { type Init, pack } from "../wire/encode.ts";
import {
  ANYTHING,
  anyOf,
  claimListMatcher,
  claimMatcher,
  endsWith,
  exact,
  headerMatcher,
  listWith,
  metadataMatcher,
  regex,
  startsWith,
  type Text,
  textMatcher,
  textValue,
} from "./matchers.ts";

/** What is asked for. */
export type Permission = Init<typeof PermissionSchema>;
/** Who asks. */
export type Principal = Init<typeof PrincipalSchema>;

/** An attribute of requests and connections: one matcher for a list of values. */
export type Attribute =
  | {
      readonly side: "permission";
      readonly httpOnly: boolean;
      readonly match: (values: readonly string[], meaning: Meaning) => Permission;
    }
  | {
      readonly side: "principal";
      readonly httpOnly: boolean;
      readonly match: (values: readonly string[], meaning: Meaning) => Principal;
    };

export const hosts = permission({ httpOnly: true }, (host) => headerRule(headerMatcher(":authority", host, true)));
export const methods = permission({ httpOnly: true }, (method) => headerRule(headerMatcher(":method", method)));
export const paths = permission({ httpOnly: true }, pathRule);
export const ports = permission({}, (port) => ({ rule: { case: "destinationPort", value: Number(port) } }));

export const principals: Attribute = {
  side: "principal",
  httpOnly: false,
  match: (values, { trustDomains }) =>
    orIds(withAliases(values, trustDomains).map((value) => peer(textMatcher(value, SPIFFE)))),
};
export const requestPrincipals: Attribute = {
  side: "principal",
  httpOnly: true,
  match: (values) => {
    const all = values.map(requestPrincipal);
    const [only] = all;
    return only !== undefined && all.length === 1 ? only : orIds(all);
  },
};
export const serviceAccounts = principal({}, (account, { namespace }) =>
  peer(regex(accountPattern(account, namespace))),
);
export const namespaces = principal({}, (namespace) => peer(regex(namespacePattern(namespace))));
export const remoteIps = principal({}, (range) => ({ identifier: { case: "remoteIp", value: literalRange(range) } }));
export const sourceIps = principal({}, (range) => ({
  identifier: { case: "directRemoteIp", value: literalRange(range) },
}));

const PLAIN: ReadonlyMap<string, Attribute> = new Map([
  ["source.ip", sourceIps],
  ["remote.ip", remoteIps],
  ["source.namespace", namespaces],
  ["source.serviceAccount", serviceAccounts],
  ["source.principal", principals],
  ["request.auth.principal", requestPrincipals],
  ["request.auth.audiences", claim("aud")],
  ["request.auth.presenter", claim("azp")],
  ["destination.ip", permission({}, (range) => ({ rule: { case: "destinationIp", value: literalRange(range) } }))],
  ["destination.port", ports],
  ["connection.sni", serverNames()],
]);

/** The attribute that a condition names; undefined when there is none of that name. */
export function attributeOf(key: string): Attribute | undefined {
  const plain = PLAIN.get(key);
  if (plain !== undefined) return plain;
  const { name, part } = parseConditionKey(key);
  if (name === "request.headers") {
    return principal({ httpOnly: true }, (value) => ({
      identifier: { case: "header", value: headerMatcher(part, value) },
    }));
  }
  if (name === "request.auth.claims") return claim(...claimPath(part));
  return name.startsWith("experimental.") ? leftByFilter(name.slice("experimental.".length), part) : undefined;
}

/** Envoy writes server names in lower case, whatever the client sends: other letters in a policy would match nothing. */
function serverNames(): Attribute {
  return permission({}, (name) => ({
    rule: { case: "requestedServerName", value: textMatcher(name.toLowerCase()) },
  }));
}

function claim(...path: readonly string[]): Attribute {
  return {
    side: "principal",
    httpOnly: true,
    match: (values) => ({ identifier: { case: "metadata", value: claimListMatcher(path, values) } }),
  };
}

/** What a filter of Envoy says of the request. `[value]` is an item of a list. */
function leftByFilter(filter: string, key: string): Attribute {
  const itemOrText = (value: string) =>
    value.startsWith("[") && value.endsWith("]")
      ? listWith(textValue(textMatcher(withoutEnds(value, "[]"))))
      : textValue(textMatcher(value));
  return {
    side: "permission",
    httpOnly: false,
    match: (values) => ({
      rule: { case: "metadata", value: metadataMatcher(filter, [key], anyOf(values.map(itemOrText))) },
    }),
  };
}

function permission(
  how: { readonly httpOnly?: boolean },
  one: (value: string, meaning: Meaning) => Permission,
): Attribute {
  const { httpOnly = false } = how;
  return {
    side: "permission",
    httpOnly,
    match: (values, meaning) => ({
      rule: { case: "orRules", value: { rules: values.map((value) => one(value, meaning)) } },
    }),
  };
}

function principal(
  how: { readonly httpOnly?: boolean },
  one: (value: string, meaning: Meaning) => Principal,
): Attribute {
  const { httpOnly = false } = how;
  return { side: "principal", httpOnly, match: (values, meaning) => orIds(values.map((value) => one(value, meaning))) };
}

function orIds(ids: readonly Principal[]): Principal {
  return { identifier: { case: "orIds", value: { ids: [...ids] } } };
}

function headerRule(value: ReturnType<typeof headerMatcher>): Permission {
  return { rule: { case: "header", value } };
}

function pathRule(path: string): Permission {
  if (!isPathTemplate(path)) {
    return { rule: { case: "urlPath", value: { rule: { case: "path", value: textMatcher(path) } } } };
  }
  const pathTemplate = path.replaceAll("{*}", "*").replaceAll("{**}", "**");
  const typedConfig = pack(UriTemplateMatchConfigSchema, { pathTemplate });
  return { rule: { case: "uriTemplate", value: { name: "uri-template", typedConfig } } };
}

/** A caller by the identity that its certificate proves. */
function peer(principalName: Text): Principal {
  return { identifier: { case: "authenticated", value: { principalName } } };
}

function requestPrincipal(value: string): Principal {
  const { issuer, subject } = parseRequestPrincipal(value);
  const and = [claimMatcher("iss", patternMatcher(issuer)), claimMatcher("sub", patternMatcher(subject))];
  return {
    identifier: {
      case: "andIds",
      value: { ids: and.map((one) => ({ identifier: { case: "metadata", value: one } })) },
    },
  };
}

function patternMatcher(pattern: TextPattern): Text {
  if (pattern.kind === "any") return ANYTHING;
  return { exact, prefix: startsWith, suffix: endsWith }[pattern.kind](pattern.text);
}
