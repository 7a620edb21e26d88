/** Tables about who may call, with which tokens, and how identities are written. */
import { create, type DescMessage, fromBinary, type Message, toJson } from "@bufbuild/protobuf";
import { checkCondition, checkOperation } from "#config/kinds/authorization-policy/check-rule.ts";
import { authorizationPolicySchema } from "#config/kinds/authorization-policy/schema.ts";
import type { ServerTls } from "#config/kinds/gateway/schema.ts";
import { type PeerAuthentication, peerAuthenticationSchema } from "#config/kinds/peer-authentication/schema.ts";
import { requestAuthenticationSchema } from "#config/kinds/request-authentication/schema.ts";
import { DEFAULT_MESH_CONFIG, meshConfigOf } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Schema } from "#config/schema/message.ts";
import { parse } from "#config/schema/parse.ts";
import type { TransportSocket } from "#gen/envoy/config/core/v3/base_pb.ts";
import { PermissionSchema, PolicySchema, PrincipalSchema } from "#gen/envoy/config/rbac/v3/rbac_pb.ts";
import { HeaderMatcherSchema } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import { HttpFilterSchema } from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { SdsSecretConfigSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import { DownstreamTlsContextSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import { StringMatcherSchema } from "#gen/envoy/type/matcher/v3/string_pb.ts";
import { formatSpiffeId, parseSpiffeId } from "#lib/pki/spiffe-id.ts";
import { readDocument } from "#lib/yaml/read.ts";
import { spaceDelimitedClaims } from "#model/identity/token-claims.ts";
import { inTrustDomains, withAliases } from "#model/identity/trust-domain.ts";
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
import { effectiveMode } from "#translate/policies/peer-authentication.ts";
import { jwtInput } from "#translate/policies/request-authentications.ts";
import { mutualTls } from "#translate/tls/downstream-tls.ts";
import { credentialSecret } from "#translate/tls/secrets.ts";
import { serverTls } from "#translate/tls/server-tls.ts";
import { traitsOf } from "#translate/traits/traits.ts";
import { meshOf, proxyOf } from "../../../support/mesh.ts";
import { service } from "../../../support/objects.ts";
import { compareJson, firstOf } from "../../compare.ts";
import type { Outcome } from "../../harness.ts";
import { formatResource, messageType, parseResource, throughBytes } from "../../resources.ts";
import { byRow, leftOut, type RowCheck, unitTables } from "../../unit-tables.ts";

const MEANING = { namespace: "my-ns", trustDomains: [] };
const NAMELESS = "nothing here asks for a secret without a name";

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

/** Some rows have objects of Kubernetes, others those of Istio's own model. */
function rawPeerAuthentication(raw: RawPolicy | { readonly Spec: unknown }): ConfigObject<PeerAuthentication> {
  if (!("Spec" in raw)) return peerAuthentication(raw);
  return peerAuthentication({ metadata: { name: "x", namespace: "my-ns" }, spec: withoutTypes(raw.Spec) });
}

interface MtlsRow {
  readonly peerPolicies?: readonly (RawPolicy | { readonly Spec: unknown })[];
  readonly expected: { readonly Mode: number; readonly Port: number; readonly HTTP: object; readonly TCP: object };
}

interface CommonTlsRow {
  readonly node: { readonly Metadata?: Readonly<Record<string, string>> };
  readonly trustDomainAliases?: readonly string[];
  readonly crl: string;
  readonly validateClient: boolean;
  readonly tlsCertificates?: ServerTls["tlsCertificates"];
  readonly expected: object;
}

/** TLS of a sidecar, with the files that its metadata names. */
function workloadTls({ node, trustDomainAliases = [] }: CommonTlsRow): TransportSocket {
  const { TLSServerCertChain: chain = "", TLSServerKey: key = "", TLSServerRootCert: roots = "" } = node.Metadata ?? {};
  const metadata = { TLS_SERVER_CERT_CHAIN: chain, TLS_SERVER_KEY: key, TLS_SERVER_ROOT_CERT: roots };
  const mesh = { ...DEFAULT_MESH_CONFIG, trustDomain: "", trustDomainAliases };
  const secrets = traitsOf(mesh, proxyOf({ metadata })).listener.serverSecrets;
  return mutualTls({ alpnProtocols: [], mesh, secrets, traits: {} });
}

/** TLS of a Gateway's server, whose files Istio hands on as if metadata named them. */
function gatewayTls({ node, crl, validateClient, tlsCertificates }: CommonTlsRow): TransportSocket {
  const { TLSServerCertChain, TLSServerKey, TLSServerRootCert } = node.Metadata ?? {};
  const tls: ServerTls = {
    mode: validateClient ? "MUTUAL" : "SIMPLE",
    ...(TLSServerCertChain && { serverCertificate: TLSServerCertChain }),
    ...(TLSServerKey && { privateKey: TLSServerKey }),
    ...(TLSServerRootCert && { caCertificates: TLSServerRootCert }),
    ...(crl && { caCrl: crl }),
    ...(tlsCertificates && { tlsCertificates }),
  };
  return serverTls({
    tls,
    isTcp: true,
    traits: {},
    secrets: { certificate: "", roots: "" },
    mesh: DEFAULT_MESH_CONFIG,
  });
}

interface TlsContext {
  readonly tlsParams?: unknown;
  readonly alpnProtocols?: unknown;
}

/** The TLS of a socket in JSON. */
function contextOf({ configType }: TransportSocket): { readonly commonTlsContext?: TlsContext } {
  const any = configType.case === "typedConfig" ? configType.value.value : new Uint8Array();
  return toJson(DownstreamTlsContextSchema, fromBinary(DownstreamTlsContextSchema, any)) as ReturnType<
    typeof contextOf
  >;
}

function sameContext(socket: TransportSocket, wanted: unknown): Outcome {
  const type = messageType(DownstreamTlsContextSchema.typeName);
  return compareJson(contextOf(socket), throughBytes(type, parseResource(type, wanted)));
}

/** What a condition asks of the caller, in JSON; undefined when it names nothing that can be asked. */
function principalOf(key: string): unknown {
  const attribute = attributeOf(key);
  if (attribute?.side !== "principal") return undefined;
  return formatResource(PrincipalSchema, made(PrincipalSchema, attribute.match(["x"], MEANING)));
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
    InboundMTLSSettings: byRow<MtlsRow>(({ peerPolicies = [], expected }) => {
      const mesh = { ...DEFAULT_MESH_CONFIG, trustDomain: "" };
      const policies = peerPolicies
        .map(rawPeerAuthentication)
        .sort((a, b) => a.metadata.createdAt - b.metadata.createdAt);
      const { mode, ports } = effectiveMode(policies, { namespace: "my-ns", labels: { app: "foo" } }, "root-namespace");
      const ours = ports[expected.Port] ?? mode;
      if (MODES[ours] !== expected.Mode) return compareJson(MODES[ours], expected.Mode);
      const context = (alpnProtocols: readonly string[]) =>
        mutualTls({ alpnProtocols, mesh, secrets: { certificate: "", roots: "" }, traits: {} });
      const web = ["h2", "http/1.1"];
      return firstOf([
        sameContext(context(web), expected.HTTP),
        sameContext(context(["istio-peer-exchange", ...web]), expected.TCP),
      ]);
    }),
    ApplyToCommonTLSContext: byRow<CommonTlsRow>((row) => {
      const isOfGateway = row.crl !== "" || !row.validateClient || (row.tlsCertificates ?? []).length > 0;
      const context = contextOf(isOfGateway ? gatewayTls(row) : workloadTls(row)).commonTlsContext ?? {};
      // The row leaves out what comes before: versions, ciphers, protocols.
      const { tlsParams: _, alpnProtocols: __, ...ours } = context;
      return compareJson(ours, row.expected);
    }),
    ConstructSdsSecretConfig: leftOut(NAMELESS),
    ConstructSdsSecretConfigForCredential: byRow<{
      name: string;
      credentialSocketExists: boolean;
      push: { readonly Mesh: object; readonly ServiceIndex?: { readonly HostnameAndNamespace?: object } };
      expected: object;
    }>(({ name, credentialSocketExists, push, expected }) => {
      const hosts = Object.keys(push.ServiceIndex?.HostnameAndNamespace ?? {});
      const providers = (meshConfigOf(push.Mesh).value?.extensionProviders ?? []).flatMap(({ sds }) =>
        sds?.service && hosts.includes(sds.service) ? [`${sds.name} outbound|${sds.port}||${sds.service}`] : [],
      );
      const ours = credentialSecret(name, credentialSocketExists ? { credentialSocket: true } : {}, providers);
      return sameMessage(SdsSecretConfigSchema.typeName, ours, expected);
    }),
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
    extractNameInBrackets: byRow<{ s: string; want: string; err: boolean }>(({ s, want, err }) => {
      const principal = principalOf(`request.headers${s}`);
      if (principal === undefined) return compareJson("refused", err ? "refused" : want);
      return compareJson(
        [...JSON.stringify(principal).matchAll(/"header":\{(?:"name":"([^"]*)")?/g)].map(([, name = ""]) => name),
        [want],
      );
    }),
    extractNameInNestedBrackets: byRow<{ s: string; want?: string[]; err: boolean }>(({ s, want, err }) => {
      const principal = principalOf(`request.auth.claims${s}`);
      if (principal === undefined) return compareJson("refused", err ? "refused" : want);
      const keys = [...JSON.stringify(principal).matchAll(/\{"key":"([^"]*)"\}/g)].map(([, name = ""]) => name);
      return compareJson(keys, ["payload", ...(want ?? [])]);
    }),
    "authz attribute generators (permission/principal)": byRow<{
      g: { $type: string };
      key: string;
      value: string;
      want?: Readonly<Record<string, unknown>>;
    }>(({ g, key, value, want }) => {
      if (want !== undefined && "filterState" in want)
        return { leftOut: "it is the form for waypoints, which come with ambient" };
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
    getTrustDomainFromSpiffeIdentity: byRow<{ principal: string; out: string }>(({ principal, out }) => {
      // Only who is of the mesh's trust domain is renamed.
      const [renamed] = withAliases([principal], ["renamed", out]);
      return compareJson(renamed?.startsWith("renamed/"), out !== "");
    }),
    isTrustDomainBeingEnforced: byRow<{ principal: string; want: boolean }>(({ principal, want }) => {
      // Where the trust domain counts, a principal stands for the same account in the aliases of that domain too.
      const [domain = ""] = principal.split("/");
      const all = withAliases([principal], [domain.replace("*", "x"), "other"]);
      return compareJson(
        all.some((one) => one.startsWith("other/")),
        want,
      );
    }),
    replaceTrustDomainInPrincipal: byRow<{ principal: string; trustDomainIn: string; out: string }>(
      ({ principal, trustDomainIn, out }) => {
        const [domain = ""] = principal.split("/");
        const [renamed] = withAliases([principal], [trustDomainIn, domain]);
        return compareJson(renamed, out === "" ? principal : out);
      },
    ),
    stringMatch: byRow<{ element: string; list: string[]; expected: boolean }>(({ element, list, expected }) => {
      // A pattern in the place of the trust domain stands for those of the mesh that fit it.
      const others = withAliases([`${element}/ns/a/sa/b`], [...list, "other"]).filter((name) =>
        name.startsWith("other/"),
      );
      return compareJson(element === "*" || others.length > 0, expected);
    }),
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
    ExpandWithTrustDomains: byRow<{ spiffeURI: string[]; trustDomains?: string[]; want: string[] }>(
      ({ spiffeURI, trustDomains = [], want }) => compareJson(inTrustDomains(spiffeURI, trustDomains), want.toSorted()),
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
