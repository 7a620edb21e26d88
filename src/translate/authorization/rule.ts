/** One rule of a policy as Envoy checks it. */
import type { Meaning } from "#config/kinds/authorization-policy/authorization-values.ts";
import type { AuthorizationRule } from "#config/kinds/authorization-policy/schema.ts";
import type { PolicySchema } from "#gen/envoy/config/rbac/v3/rbac_pb.ts";
import type { Init } from "../wire/encode.ts";
import {
  type Attribute,
  attributeOf,
  hosts,
  methods,
  namespaces,
  type Permission,
  type Principal,
  paths,
  ports,
  principals,
  remoteIps,
  requestPrincipals,
  serviceAccounts,
  sourceIps,
} from "./attributes.ts";

/** A rule in Envoy's terms. */
export type RbacPolicy = Init<typeof PolicySchema>;

/** How a rule is to be read. */
export interface RuleUse extends Meaning {
  /** Whether only a TCP connection will be seen. */
  readonly forTcp: boolean;
  /** Whether what cannot be seen makes the rule match nothing (to allow), or is left out of it (to deny). */
  readonly allows: boolean;
}

/** A policy without rules: it is there, and matches nothing. */
export const MATCHES_NOTHING: RbacPolicy = {
  permissions: [{ rule: { case: "notRule", value: { rule: { case: "any", value: true } } } }],
  principals: [{ identifier: { case: "notId", value: { identifier: { case: "any", value: true } } } }],
};

/** A policy that looks at nothing. */
export const MATCHES_EVERYTHING: RbacPolicy = {
  permissions: [{ rule: { case: "any", value: true } }],
  principals: [{ identifier: { case: "any", value: true } }],
};

/** The rule, or undefined where it looks at something that a TCP connection does not show and therefore allows nothing. */
export function rbacPolicy({ from = [], to = [], when = [] }: AuthorizationRule, use: RuleUse): RbacPolicy | undefined {
  const conditions = when.map(({ key, values, notValues }) => demand(attributeOf(key), values, notValues));
  if (conditions.some(({ attribute }) => attribute === undefined) && use.allows) return undefined;
  const sources = from.map(({ source }) => [
    demand(principals, source.principals, source.notPrincipals),
    demand(requestPrincipals, source.requestPrincipals, source.notRequestPrincipals),
    demand(serviceAccounts, source.serviceAccounts, source.notServiceAccounts),
    demand(namespaces, source.namespaces, source.notNamespaces),
    demand(remoteIps, source.remoteIpBlocks, source.notRemoteIpBlocks),
    demand(sourceIps, source.ipBlocks, source.notIpBlocks),
  ]);
  const operations = to.map(({ operation }) => [
    demand(hosts, operation.hosts, operation.notHosts),
    demand(methods, operation.methods, operation.notMethods),
    demand(paths, operation.paths, operation.notPaths),
    demand(ports, operation.ports, operation.notPorts),
  ]);
  const all = [...sources, ...operations, conditions].flat();
  if (use.allows && use.forTcp && all.some(isHttpOnly)) return undefined;
  const { copies, shared } = placed(conditions, Math.max(sources.length, operations.length));
  const asked = (to.length > 0 ? operations : [[]]).map((own) => andRules(rulesOf([...own, ...copies], use)));
  const callers = (from.length > 0 ? sources : [[]]).map((own) => andIds(idsOf([...own, ...copies], use)));
  if (shared.length === 0) return { permissions: asked, principals: callers };
  return {
    permissions: [andRules([{ rule: { case: "orRules", value: { rules: asked } } }, ...rulesOf(shared, use)])],
    principals: [andIds([{ identifier: { case: "orIds", value: { ids: callers } } }, ...idsOf(shared, use)])],
  };
}

/** Values of conditions that are copied at most. */
const MOST_COPIES = 1_000;

/**
 * Each source and each operation gets a copy of the conditions, as in Istio. Where these would be many, they stand once
 * beside all of them instead, which means the same.
 */
function placed(
  conditions: readonly Demand[],
  times: number,
): { readonly copies: readonly Demand[]; readonly shared: readonly Demand[] } {
  const size = conditions.reduce((sum, { values, notValues }) => sum + values.length + notValues.length, 0);
  return size * times > MOST_COPIES ? { copies: [], shared: conditions } : { copies: conditions, shared: [] };
}

/** An attribute that has to have one of the values, and none of the others. */
interface Demand {
  readonly attribute: Attribute | undefined;
  readonly values: readonly string[];
  readonly notValues: readonly string[];
}

function demand(
  attribute: Attribute | undefined,
  values: readonly string[] = [],
  notValues: readonly string[] = [],
): Demand {
  return { attribute, values, notValues };
}

function isHttpOnly({ attribute, values, notValues }: Demand): boolean {
  return attribute?.httpOnly === true && values.length + notValues.length > 0;
}

function rulesOf(demands: readonly Demand[], use: RuleUse): Permission[] {
  return demands.flatMap(({ attribute, values, notValues }): Permission[] => {
    if (attribute?.side !== "permission" || (use.forTcp && attribute.httpOnly)) return [];
    return [
      ...(values.length > 0 ? [attribute.match(values, use)] : []),
      ...(notValues.length > 0 ? [{ rule: { case: "notRule" as const, value: attribute.match(notValues, use) } }] : []),
    ];
  });
}

function andRules(rules: Permission[]): Permission {
  return { rule: { case: "andRules", value: { rules: rules.length > 0 ? rules : [ANY_RULE] } } };
}

function idsOf(demands: readonly Demand[], use: RuleUse): Principal[] {
  return demands.flatMap(({ attribute, values, notValues }): Principal[] => {
    if (attribute?.side !== "principal" || (use.forTcp && attribute.httpOnly)) return [];
    return [
      ...(values.length > 0 ? [attribute.match(values, use)] : []),
      ...(notValues.length > 0
        ? [{ identifier: { case: "notId" as const, value: attribute.match(notValues, use) } }]
        : []),
    ];
  });
}

function andIds(ids: Principal[]): Principal {
  return { identifier: { case: "andIds", value: { ids: ids.length > 0 ? ids : [ANY_ID] } } };
}

const ANY_RULE: Permission = { rule: { case: "any", value: true } };
const ANY_ID: Principal = { identifier: { case: "any", value: true } };
