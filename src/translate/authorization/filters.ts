/** Authorization policies as filters: first those that ask somebody else, then what is recorded, denied and allowed. */

import { create } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import type { EnforcedPolicy } from "#config/kinds/unreadable-policy.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { isDryRun } from "#config/terms/dry-run.ts";
import { type Filter, FilterSchema } from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import { RBAC_Action as Action, type RBACSchema } from "#gen/envoy/config/rbac/v3/rbac_pb.ts";
import { RBACSchema as HttpRbacSchema } from "#gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts";
import {
  type HttpFilter,
  HttpFilterSchema,
} from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { RBACSchema as TcpRbacSchema } from "#gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts";
import { type Init, pack } from "../wire/encode.ts";
import { CUSTOM_RULE_PREFIX, httpExtAuthz, type ProviderTarget, tcpExtAuthz, VERDICT_PREFIX } from "./provider.ts";
import { MATCHES_EVERYTHING, MATCHES_NOTHING, type RbacPolicy, rbacPolicy } from "./rule.ts";

type PolicyObject = ConfigObject<EnforcedPolicy>;
type Rbac = Init<typeof RBACSchema>;

const TCP_STATS = "tcp.";

/** What the filters of a listener depend on. */
export interface AuthorizationInput {
  /** Those that select the workload. */
  readonly policies: readonly PolicyObject[];
  /** The mesh's own trust domain, then its aliases. */
  readonly trustDomains: readonly string[];
  /** Who is asked by CUSTOM policies; undefined when the provider they name does not exist or is not the same for all. */
  readonly provider: ProviderTarget | undefined;
}

/** The filter for what stands in for security objects that cannot be read: nobody need be asked about what is denied. */
export function unreadableHttpFilters(input: AuthorizationInput): HttpFilter[] {
  const rules = unreadableRules(input.policies, false);
  return rules === undefined ? [] : [httpFilter("envoy.filters.http.rbac", pack(HttpRbacSchema, { rules }))];
}

/** Filters of CUSTOM policies: who is asked comes before everything else is decided. */
export function customHttpFilters(input: AuthorizationInput): HttpFilter[] {
  const rules = rulesOf(input, "CUSTOM", false)?.enforced;
  if (rules === undefined) return [];
  const asks = input.provider && httpExtAuthz(input.provider);
  if (asks === undefined)
    return [httpFilter("envoy.filters.http.rbac", pack(HttpRbacSchema, { rules: denied(rules) }))];
  const verdict = pack(HttpRbacSchema, { shadowRules: rules, shadowRulesStatPrefix: VERDICT_PREFIX });
  return [httpFilter("envoy.filters.http.rbac", verdict), httpFilter("envoy.filters.http.ext_authz", asks)];
}

/** Filters of the other policies. */
export function httpAuthorization(input: AuthorizationInput): HttpFilter[] {
  return ACTIONS.flatMap((action) => {
    const rules = rulesOf(input, action, false);
    return rules === undefined ? [] : [httpFilter("envoy.filters.http.rbac", pack(HttpRbacSchema, rbac(rules)))];
  });
}

/** The same for connections. Those that check the tokens of requests have no say about them. */
export function unreadableTcpFilters(input: AuthorizationInput): Filter[] {
  const rules = unreadableRules(input.policies, true);
  if (rules === undefined) return [];
  return [tcpFilter("envoy.filters.network.rbac", pack(TcpRbacSchema, { rules, statPrefix: TCP_STATS }))];
}

/** Filters of CUSTOM policies for connections. A provider that speaks HTTP cannot be asked about them. */
export function customTcpFilters(input: AuthorizationInput): Filter[] {
  const rules = rulesOf(input, "CUSTOM", true)?.enforced;
  if (rules === undefined) return [];
  const { provider } = input;
  if (provider === undefined || httpExtAuthz(provider) === undefined) {
    const config = pack(TcpRbacSchema, { rules: denied(rules), statPrefix: TCP_STATS });
    return [tcpFilter("envoy.filters.network.rbac", config)];
  }
  const asks = tcpExtAuthz(provider);
  if (asks === undefined) return [];
  const verdict = pack(TcpRbacSchema, {
    shadowRules: rules,
    statPrefix: TCP_STATS,
    shadowRulesStatPrefix: VERDICT_PREFIX,
  });
  return [tcpFilter("envoy.filters.network.rbac", verdict), tcpFilter("envoy.filters.network.ext_authz", asks)];
}

/** Filters of the other policies for connections. */
export function tcpAuthorization(input: AuthorizationInput): Filter[] {
  return ACTIONS.flatMap((action) => {
    const rules = rulesOf(input, action, true);
    if (rules === undefined) return [];
    return [tcpFilter("envoy.filters.network.rbac", pack(TcpRbacSchema, { ...rbac(rules), statPrefix: TCP_STATS }))];
  });
}

/** The order in which they are checked: what is denied is denied, whatever allows it. */
const ACTIONS = ["AUDIT", "DENY", "ALLOW"] as const;
const ENVOY_ACTION = { AUDIT: Action.LOG, DENY: Action.DENY, ALLOW: Action.ALLOW, CUSTOM: Action.DENY };
const TRIED_OUT: Readonly<Record<string, string>> = { ALLOW: "istio_dry_run_allow_", DENY: "istio_dry_run_deny_" };

interface Rules {
  readonly action: keyof typeof ENVOY_ACTION;
  readonly enforced: Rbac | undefined;
  /** Verdicts that are counted and logged only. */
  readonly triedOut: Rbac | undefined;
}

function rulesOf(input: AuthorizationInput, action: Rules["action"], forTcp: boolean): Rules | undefined {
  const policies = input.policies.filter(
    ({ spec }) => spec.unreadable === undefined && (spec.action ?? "ALLOW") === action,
  );
  if (policies.length === 0) return undefined;
  const use = { forTcp, allows: action === "ALLOW", trustDomains: input.trustDomains };
  const rulesFrom = (some: readonly PolicyObject[]): Rbac | undefined =>
    some.length === 0
      ? undefined
      : {
          action: ENVOY_ACTION[action],
          policies: Object.fromEntries(some.flatMap((policy) => namedRules(policy, use))),
        };
  return {
    action,
    enforced: rulesFrom(policies.filter((policy) => !isDryRun(policy.metadata))),
    triedOut: rulesFrom(policies.filter(({ metadata }) => isDryRun(metadata))),
  };
}

function unreadableRules(policies: readonly PolicyObject[], forTcp: boolean): Rbac | undefined {
  const denying = policies.filter(
    ({ kind, spec }) => spec.unreadable !== undefined && !(forTcp && kind === "RequestAuthentication"),
  );
  if (denying.length === 0) return undefined;
  const named = denying.map(({ metadata: { namespace, name } }) => `ns[${namespace}]-policy[${name}]-unreadable`);
  return { action: Action.DENY, policies: Object.fromEntries(named.map((name) => [name, MATCHES_EVERYTHING])) };
}

function namedRules(
  { spec, metadata: { name, namespace } }: PolicyObject,
  use: { readonly forTcp: boolean; readonly allows: boolean; readonly trustDomains: readonly string[] },
): [string, RbacPolicy][] {
  const prefix = spec.action === "CUSTOM" ? `${CUSTOM_RULE_PREFIX}-` : "";
  const nameOf = (index: number) => `${prefix}ns[${namespace}]-policy[${name}]-rule[${index}]`;
  const { rules = [] } = spec;
  if (rules.length === 0) return [[nameOf(0), MATCHES_NOTHING]];
  return rules.flatMap((rule, i) => {
    const policy = rbacPolicy(rule, { ...use, namespace });
    return policy === undefined ? [] : [[nameOf(i), policy] satisfies [string, RbacPolicy]];
  });
}

function rbac({ action, enforced, triedOut }: Rules): Init<typeof HttpRbacSchema> {
  return {
    ...(enforced && { rules: enforced }),
    ...(triedOut && { shadowRules: triedOut }),
    // Istio names the statistics also where nothing is tried out.
    shadowRulesStatPrefix: TRIED_OUT[triedOut === undefined ? "ALLOW" : action] ?? "",
  };
}

/** Nobody can be asked: whatever would have been asked about is denied. */
function denied({ policies = {} }: Rbac): Rbac {
  const renamed = Object.entries(policies).map(([name, policy]) => [`${name}-deny-due-to-bad-CUSTOM-action`, policy]);
  return { action: Action.DENY, policies: Object.fromEntries(renamed) };
}

function httpFilter(name: string, typedConfig: Any): HttpFilter {
  return create(HttpFilterSchema, { name, configType: { case: "typedConfig", value: typedConfig } });
}

function tcpFilter(name: string, typedConfig: Any): Filter {
  return create(FilterSchema, { name, configType: { case: "typedConfig", value: typedConfig } });
}
