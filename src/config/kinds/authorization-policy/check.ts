import { checkDryRun } from "../../checks/metadata.ts";
import type { ConfigObject } from "../../schema/config-object.ts";
import { error, type Problem, warning } from "../../schema/problem.ts";
import { checkAttachment } from "../../selection/check.ts";
import { checkCondition, checkOperation, checkSource } from "./check-rule.ts";
import type { AuthorizationPolicy, AuthorizationRule } from "./schema.ts";

/** Fields of a source and keys of conditions that come from filters behind the one that asks a provider. */
const NOT_FOR_PROVIDERS = ["principals", "requestPrincipals", "namespaces", "serviceAccounts"] as const;
const NOT_FOR_PROVIDERS_KEY = /^(source\.(namespace|serviceAccount|principal)$|request\.auth\.)/;
/** What a connection shows without HTTP. */
const TCP_SOURCE = ["principals", "ipBlocks", "namespaces", "remoteIpBlocks", "serviceAccounts"] as const;

/** Checks an AuthorizationPolicy. */
export function* checkAuthorizationPolicy({ spec, metadata }: ConfigObject<AuthorizationPolicy>): Iterable<Problem> {
  const { action = "ALLOW", provider, rules } = spec;
  yield* checkDryRun(metadata, action);
  yield* checkAttachment(spec);
  if ((rules ?? []).length === 0 && (action === "DENY" || action === "CUSTOM")) {
    yield error("spec.rules", `is required for action ${action}: without rules it never applies, {} applies always`);
  }
  if (action === "CUSTOM") yield* checkProvider(spec);
  else if (provider !== undefined) yield error("spec.provider", `is for action CUSTOM only, not ${action}`);
  for (const [i, rule] of (rules ?? []).entries()) {
    yield* checkRule(rule, `spec.rules[${i}]`);
    if (action === "DENY" && deniesAllTcp(rule)) {
      yield warning(`spec.rules[${i}]`, "denies all of TCP, since it looks at HTTP alone: say which ports are meant");
    }
  }
}

function* checkProvider({ provider, rules = [] }: AuthorizationPolicy): Iterable<Problem> {
  if ((provider?.name ?? "") === "") yield error("spec.provider.name", "is required for action CUSTOM");
  for (const [i, { from = [], when = [] }] of rules.entries()) {
    for (const [j, { source }] of from.entries()) {
      for (const name of NOT_FOR_PROVIDERS) {
        for (const field of [name, negated(name)] as const) {
          if ((source[field] ?? []).length > 0) {
            yield error(`spec.rules[${i}].from[${j}].source.${field}`, "cannot be used with action CUSTOM");
          }
        }
      }
    }
    for (const [j, { key }] of when.entries()) {
      if (NOT_FOR_PROVIDERS_KEY.test(key)) {
        yield error(`spec.rules[${i}].when[${j}].key`, `cannot be "${key}" with action CUSTOM`);
      }
    }
  }
}

function* checkRule({ from, to, when = [] }: AuthorizationRule, at: string): Iterable<Problem> {
  for (const [i, { source }] of (from ?? []).entries()) yield* checkSource(source, `${at}.from[${i}].source`);
  for (const [i, { operation }] of (to ?? []).entries()) yield* checkOperation(operation, `${at}.to[${i}].operation`);
  for (const [i, condition] of when.entries()) yield* checkCondition(condition, `${at}.when[${i}]`);
}

/** Whether a rule looks only at what TCP cannot show: then the part for TCP is a rule that matches everything. */
function deniesAllTcp({ from = [], to = [] }: AuthorizationRule): boolean {
  if (to.length > 0) {
    return !to.some(({ operation: { ports, notPorts } }) => ports !== undefined || notPorts !== undefined);
  }
  const showsTcp = from.some(({ source }) =>
    TCP_SOURCE.some((name) => source[name] !== undefined || source[negated(name)] !== undefined),
  );
  return from.length > 0 && !showsTcp;
}

function negated<Name extends string>(name: Name): `not${Capitalize<Name>}` {
  return `not${name.charAt(0).toUpperCase()}${name.slice(1)}` as `not${Capitalize<Name>}`;
}
