/** Tables about who may call, with which tokens, and how identities are written. */
import type { DescMessage, Message } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { checkCondition, checkOperation } from "#config/checks/authorization-rule.ts";
import type { ConfigObject } from "#config/config-object.ts";
import { authorizationPolicySchema } from "#config/kinds/authorization-policy.ts";
import { type PeerAuthentication, peerAuthenticationSchema } from "#config/kinds/peer-authentication.ts";
import { requestAuthenticationSchema } from "#config/kinds/request-authentication.ts";
import type { Schema } from "#config/schema/message.ts";
import { parse } from "#config/schema/parse.ts";
import { PermissionSchema, PolicySchema, PrincipalSchema } from "#gen/envoy/config/rbac/v3/rbac_pb.ts";
import { HeaderMatcherSchema } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import { HttpFilterSchema } from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { StringMatcherSchema } from "#gen/envoy/type/matcher/v3/string_pb.ts";
import { formatSpiffeId, parseSpiffeId } from "#lib/pki/spiffe-id.ts";
import { readDocument } from "#lib/yaml/read.ts";
import { spaceDelimitedClaims } from "#model/token-claims.ts";
import { withAliases } from "#model/trust-domain.ts";
import { type JwtInput, jwtFilter } from "#translate/authentication/jwt-filter.ts";
import {
  type Attribute,
  attributeOf,
  methods,
  namespaces,
  paths,
  principals,
  remoteIps,
  requestPrincipals,
  serviceAccounts,
  sourceIps,
} from "#translate/authorization/attributes.ts";
import { headerMatcher, textMatcher } from "#translate/authorization/matchers.ts";
import { rbacPolicy } from "#translate/authorization/rule.ts";
import { effectiveMode } from "#translate/scope/peer-authentication.ts";
import { jwtInput } from "#translate/scope/request-authentications.ts";
import { meshOf } from "../../../support/mesh.ts";
import { service } from "../../../support/objects.ts";
import { compareJson } from "../../compare.ts";
import type { Outcome } from "../../harness.ts";
import { formatResource, messageType, parseResource, throughBytes } from "../../resources.ts";
import { byRow, leftOut, type RowCheck, unitTables } from "../../unit-tables.ts";

const MEANING = { namespace: "my-ns", trustDomains: [] };
const INSIDE = "that is a step inside Istio's code; its effect is seen in the tables of whole rules";

function read<Spec>(schema: Schema<Spec>, raw: unknown): Spec {
  const { value, problems } = parse(schema, raw, "spec");
  if (value === undefined) throw new Error(JSON.stringify(problems));
  return value;
}

/** Both as proto JSON of one message type. */
function sameMessage(name: string, ours: Message, wanted: unknown): Outcome {
  const type = messageType(name);
  return compareJson(throughBytes(type, ours), throughBytes(type, parseResource(type, wanted)));
}

const made = <Desc extends DescMessage>(schema: Desc, init: Parameters<typeof create<Desc>>[1]) => create(schema, init);

/** Keys that the servers of upstream's tests give out at every address on this machine. */
const SERVED = `{ "keys": [ { "kid": "fakeKey1_1", "alg": "RS256", "kty": "RSA", "n": "abc", "e": "def" },
\t\t\t{ "kid": "fakeKey1_2", "alg": "RS256", "kty": "RSA", "n": "123", "e": "456" } ] }`;
const FETCHING = ["control-plane", "hybrid", "envoy"] as const;

function jwtFilterOf(specs: readonly unknown[], mode = 0) {
  return jwtFilter(jwtInputOf(specs, mode), false);
}

function jwtInputOf(specs: readonly unknown[], mode = 0): JwtInput {
  const parsed = specs.map((spec) => read(requestAuthenticationSchema, withoutTypes(spec)));
  const uris = parsed.flatMap(({ jwtRules = [] }) => jwtRules.map(({ jwksUri = "" }) => jwksUri));
  const local = uris.filter((uri) => URL.canParse(uri) && new URL(uri).hostname === "localhost");
  const mesh = meshOf(service("mesh/jwt-token-issuer", { name: "http", port: 7443 }), {
    features: { keyFetching: FETCHING[mode] ?? "control-plane" },
  });
  const objects = parsed.map((spec, i) => ({
    kind: "RequestAuthentication",
    metadata: head(`r-${i}`, "default"),
    spec,
    origin: undefined,
  }));
  return jwtInput({ ...mesh, keySets: new Map(local.map((uri) => [uri, SERVED])) }, objects);
}

/** The filter of rules that are in order already. */
function jwtFilterInOrder(rules: readonly unknown[]) {
  const inputs = rules.map((rule) => jwtInputOf([{ jwtRules: [rule] }]));
  return jwtFilter(
    {
      jwtRules: inputs.flatMap(({ jwtRules }) => jwtRules),
      jwtKeys: inputs.flatMap(({ jwtKeys }) => jwtKeys),
      jwtClusters: inputs.flatMap(({ jwtClusters }) => jwtClusters),
    },
    false,
  );
}

function withoutTypes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTypes);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== "$type")
      .map(([key, inner]) => [key, withoutTypes(inner)]),
  );
}

function head(name: string, namespace: string, createdAt = 0): ConfigObject["metadata"] {
  return { name, namespace, labels: {}, annotations: {}, createdAt };
}

interface RawPolicy {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly creationTimestamp?: string };
  readonly spec: unknown;
}

function peerAuthentication({ metadata, spec }: RawPolicy): ConfigObject<PeerAuthentication> {
  const { name, namespace, creationTimestamp } = metadata;
  const createdAt = creationTimestamp === undefined ? 0 : Date.parse(creationTimestamp);
  return {
    kind: "PeerAuthentication",
    metadata: head(name, namespace, createdAt),
    spec: read(peerAuthenticationSchema, spec),
    origin: undefined,
  };
}

const MODES = { DISABLE: 1, PERMISSIVE: 2, STRICT: 3 };
const GENERATORS: Readonly<Record<string, Attribute>> = {
  "model.srcIPGenerator": sourceIps,
  "model.remoteIPGenerator": remoteIps,
  "model.srcNamespaceGenerator": namespaces,
  "model.srcPrincipalGenerator": principals,
  "model.pathGenerator": paths,
  "model.methodGenerator": methods,
};

/** One value is one matcher; ours come in a list. */
function single(attribute: Attribute, value: string): { readonly name: string; readonly message: Message } {
  if (attribute.side === "permission") {
    const message = made(PermissionSchema, attribute.match([value], MEANING));
    const [only] = message.rule.case === "orRules" ? message.rule.value.rules : [message];
    return { name: "envoy.config.rbac.v3.Permission", message: only ?? message };
  }
  const message = made(PrincipalSchema, attribute.match([value], MEANING));
  const [only] = message.identifier.case === "orIds" ? message.identifier.value.ids : [message];
  return { name: "envoy.config.rbac.v3.Principal", message: only ?? message };
}

interface RuleRow {
  readonly rule: unknown;
  readonly action?: number;
  readonly forTCP?: boolean;
  readonly tdBundle?: { readonly TrustDomains: readonly string[] };
  readonly want?: readonly string[];
  readonly notWant?: readonly string[];
}

/** Which of the texts the filter made of a rule mentions. */
const ruleTexts: RowCheck = byRow<RuleRow>(
  ({ rule, action = 0, forTCP = false, tdBundle, want = [], notWant = [] }) => {
    const [parsed] = read(authorizationPolicySchema, { rules: [rule] }).rules ?? [];
    const use = { namespace: "foo", trustDomains: tdBundle?.TrustDomains ?? [], forTcp: forTCP, allows: action === 0 };
    const policy = parsed && rbacPolicy(parsed, use);
    const text = policy === undefined ? "" : JSON.stringify(formatResource(PolicySchema, made(PolicySchema, policy)));
    // Of a request's principal Istio's text has issuer and subject apart, as ours.
    const has = (part: string) =>
      text.includes(part) || part.split(/\/(?=[^/]*$)/).every((half) => text.includes(`"${half}"`));
    return compareJson([want.filter((part) => !has(part)), notWant.filter(has)], [[], []]);
  },
);

const isWrong = (problems: Iterable<unknown>) => [...problems].length > 0;

export const securityTables = unitTables(
  "unit tables: security",
  ["pilot/pkg/security", "pkg/config/security", "pkg/spiffe"],
  {
    buildSpaceDelimitedClaims: byRow<{ input?: string[]; expected: string[] }>(({ input, expected }) =>
      compareJson(spaceDelimitedClaims(input), expected),
    ),
    convertToEnvoyJwtConfig: byRow<{ in: unknown[]; expected?: object }>(({ in: jwtRules, expected }) => {
      const filter = jwtFilterInOrder(jwtRules);
      if (filter?.configType.case !== "typedConfig") return compareJson(filter, expected);
      const ours = formatResource(messageType("google.protobuf.Any"), filter.configType.value);
      const type = "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication";
      return compareJson(ours, { "@type": type, ...expected });
    }),
    "policyApplier.JwtFilter": byRow<{ in: { Spec: unknown }[]; jwksFetchMode: number; expected?: object }>(
      ({ in: objects, jwksFetchMode, expected }) => {
        const filter = jwtFilterOf(
          objects.map(({ Spec }) => Spec),
          jwksFetchMode,
        );
        if (filter === undefined || expected === undefined) return compareJson(filter, expected);
        return sameMessage(HttpFilterSchema.typeName, filter, expected);
      },
    ),
    "ComposePeerAuthentication(root ns, configs)": byRow<{
      configs: RawPolicy[];
      want: { Mode: number; PerPort?: object };
    }>(({ configs, want }) => {
      const labels = Object.assign(
        {},
        ...configs.map(({ spec }) => read(peerAuthenticationSchema, spec).selector?.matchLabels ?? {}),
      );
      const policies = configs.map(peerAuthentication).sort((a, b) => a.metadata.createdAt - b.metadata.createdAt);
      const { mode, ports } = effectiveMode(policies, { namespace: "my-ns", labels }, "root-namespace");
      const perPort = Object.fromEntries(Object.entries(ports).map(([port, one]) => [port, MODES[one]]));
      return compareJson([MODES[mode], perPort], [want.Mode, want.PerPort ?? {}]);
    }),
    InboundMTLSSettings: leftOut("modes and TLS contexts of ports are compared as whole listeners, in the xDS groups"),
    ApplyToCommonTLSContext: leftOut("TLS contexts are compared as whole listeners and clusters, in the xDS groups"),
    ConstructSdsSecretConfig: leftOut(INSIDE),
    ConstructSdsSecretConfigForCredential: leftOut(
      "credentials of gateways are compared as whole listeners, in the xDS groups",
    ),
    "matcher.HeaderMatcher": byRow<{ K: string; V: string; Expect: object }>(({ K, V, Expect }) =>
      sameMessage(HeaderMatcherSchema.typeName, made(HeaderMatcherSchema, headerMatcher(K, V)), Expect),
    ),
    "matcher.HostMatcher": byRow<{ K: string; V: string; Expect: object }>(({ K, V, Expect }) =>
      sameMessage(HeaderMatcherSchema.typeName, made(HeaderMatcherSchema, headerMatcher(K, V, true)), Expect),
    ),
    "matcher.PathMatcher": byRow<{ V: string; Expect: object }>(({ V, Expect }) => {
      const { name, message } = single(paths, V);
      return sameMessage(name, message, { urlPath: Expect });
    }),
    "matcher.PathTemplateMatcher": byRow<{ path: string; want: object }>(({ path, want }) => {
      const { name, message } = single(paths, path);
      const type = "type.googleapis.com/envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig";
      return sameMessage(name, message, {
        uriTemplate: { name: "uri-template", typedConfig: { "@type": type, ...want } },
      });
    }),
    "matcher.StringMatcherWithPrefix": byRow<{ v: string; prefix: string; want: object }>(({ v, prefix, want }) =>
      sameMessage(StringMatcherSchema.typeName, made(StringMatcherSchema, textMatcher(v, prefix)), want),
    ),
    convertToPort: byRow<{ V: string; Err: string }>(({ V, Err }) =>
      compareJson(isWrong(checkOperation({ ports: [V] }, "operation")), Err !== ""),
    ),
    extractNameInBrackets: leftOut(INSIDE),
    extractNameInNestedBrackets: leftOut(INSIDE),
    "authz attribute generators (permission/principal)": byRow<{
      g: { $type: string };
      key: string;
      value: string;
      want?: Readonly<Record<string, unknown>>;
    }>(({ g, key, value, want }) => {
      if (want !== undefined && "filterState" in want)
        return { leftOut: "it is the form for waypoints, which come with ambient" };
      if (g.$type === "model.envoyFilterGenerator") {
        return { leftOut: "filters are named envoy.filters.*, as validation demands; the row names others" };
      }
      const attribute = GENERATORS[g.$type] ?? attributeOf(key);
      if (attribute === undefined || want === undefined) return compareJson(attribute, want);
      const { name, message } = single(attribute, value);
      return sameMessage(name, message, withoutTypes(want));
    }),
    "Model.Generate": ruleTexts,
    "Model.MigrateTrustDomain": ruleTexts,
    "requestPrincipal generator": byRow<{ in: string; want: string }>(({ in: value, want }) => {
      const { name, message } = single(requestPrincipals, value);
      return sameMessage(name, message, readDocument(want).value);
    }),
    "serviceAccounts matching": byRow<{ Identity: string; Input: string; Match: boolean }>(
      ({ Identity, Input, Match }) => {
        const { message } = single(serviceAccounts, Input);
        const text = JSON.stringify(formatResource(PrincipalSchema, message));
        const [, pattern = ""] = /"regex":"((?:[^"\\]|\\.)*)"/.exec(text) ?? [];
        return compareJson(new RegExp(`^(?:${JSON.parse(`"${pattern}"`)})$`).test(Identity), Match);
      },
    ),
    getTrustDomainFromSpiffeIdentity: leftOut(INSIDE),
    isTrustDomainBeingEnforced: leftOut(INSIDE),
    replaceTrustDomainInPrincipal: leftOut(INSIDE),
    stringMatch: leftOut(INSIDE),
    "Bundle.ReplaceTrustDomainAliases": byRow<{
      principals: string[];
      trustDomainBundle: { TrustDomains: string[] };
      expect: string[];
    }>(({ principals: given, trustDomainBundle, expect }) =>
      compareJson(withAliases(given, trustDomainBundle.TrustDomains), expect),
    ),
    CheckValidPathTemplate: byRow<{ values: string[]; wantError: boolean }>(({ values, wantError }) =>
      compareJson(isWrong(checkOperation({ paths: values }, "operation")), wantError),
    ),
    IsValidLiteral: byRow<{ glob: string; expected: boolean }>(({ glob, expected }) =>
      compareJson(!isWrong(checkOperation({ paths: [`/${glob}/{*}`] }, "operation")), expected),
    ),
    ParseJwksURI: byRow<{ in: string; expected: { Hostname?: string; Port?: number }; expectedError: boolean }>(
      ({ in: jwksUri, expected, expectedError }) => {
        const filter = jwtFilterOf([{ jwtRules: [{ issuer: "x", jwksUri }] }], 2);
        const type = messageType("envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter");
        const text = filter === undefined ? "" : JSON.stringify(formatResource(type, filter));
        const cluster = `outbound|${expected.Port}||${expected.Hostname}`;
        return compareJson(text.includes(expectedError ? "localJwks" : `"${cluster}"`), true);
      },
    ),
    "ValidateAttribute(key, values)": byRow<{ key: string; values: string[]; wantError: boolean }>(
      ({ key, values, wantError }) =>
        compareJson(isWrong(checkCondition({ key, values, notValues: undefined }, "when")), wantError),
    ),
    ExpandWithTrustDomains: leftOut(
      "names of servers are expanded where clusters are made; the xDS groups compare these",
    ),
    GenSpiffeURI: byRow<{
      trustDomain: string;
      namespace: string;
      serviceAccount: string;
      expectedURI: string;
      expectedError: string;
    }>(({ expectedURI, expectedError, ...id }) => {
      if (expectedError !== "") return compareJson(parseSpiffeId(formatSpiffeId(id)), undefined);
      return compareJson(formatSpiffeId(id), expectedURI);
    }),
    ParseIdentity: byRow<{
      input: string;
      expected?: { TrustDomain: string; Namespace?: string; ServiceAccount?: string };
    }>(({ input, expected }) => {
      if (expected !== undefined && expected.Namespace === undefined) {
        return { leftOut: "an identity without namespace and account is nobody's here" };
      }
      const { trustDomain, namespace, serviceAccount } = parseSpiffeId(input) ?? {};
      const wanted = [expected?.TrustDomain, expected?.Namespace, expected?.ServiceAccount];
      return compareJson([trustDomain, namespace, serviceAccount], wanted);
    }),
  },
);
