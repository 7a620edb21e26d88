/**
 * What the policies of a workload say to a request, without a proxy: which policy, rule and field decides, and what would
 * have to be different. It follows the rules themselves, not the filters made of them, so that each checks the other.
 */

import type { Meaning } from "#config/kinds/authorization-policy/authorization-values.ts";
import type { AuthorizationPolicy, AuthorizationRule } from "#config/kinds/authorization-policy/schema.ts";
import type { EnforcedPolicy } from "#config/kinds/unreadable-policy.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { isDryRun } from "#config/terms/dry-run.ts";
import { type Attribute, attributeOfKey, FIELDS } from "./attributes.ts";
import type { Request } from "./request.ts";

type PolicyObject = ConfigObject<EnforcedPolicy>;
type Action = NonNullable<AuthorizationPolicy["action"]>;

/** What decides. */
export interface EvaluationInput {
  /** Those that select the workload. */
  readonly policies: readonly PolicyObject[];
  readonly trustDomains: readonly string[];
  /** Whether the provider that CUSTOM policies name can be asked; where not, what they match is denied. */
  readonly canAsk: boolean;
  readonly request: Request;
}

/** What a field of a rule said to the request. */
export interface FieldOutcome {
  /** `spec.rules[0].to[0].operation.paths` */
  readonly field: string;
  readonly values: readonly string[];
  /** What the request has there, for people. */
  readonly found: string;
  readonly fits: boolean;
}

/** What a rule said to the request. */
export interface RuleOutcome {
  readonly policy: PolicyObject;
  readonly action: Action;
  /** Only recorded, not enforced (annotation `istio.io/dry-run`). */
  readonly isDryRun: boolean;
  /** Undefined for a policy without rules, which matches nothing. */
  readonly rule: number | undefined;
  readonly matches: boolean;
  /** The fields of the alternatives that came closest. */
  readonly fields: readonly FieldOutcome[];
}

/** Allowed or not, or up to a provider that is asked. */
export interface Evaluation {
  readonly verdict: "allowed" | "denied" | "asked";
  /** The rule that decided; undefined when it was decided by there being none. */
  readonly decidedBy: RuleOutcome | undefined;
  readonly why: Why;
  /** Every rule, in the order in which actions are looked at. */
  readonly rules: readonly RuleOutcome[];
}

/** The reasons there are. */
export type Why =
  | "unreadable"
  | "custom"
  | "custom-without-provider"
  | "denied-by-rule"
  | "allowed-by-rule"
  | "no-rule-allows"
  | "no-policy";

/** Evaluates a request. */
export function evaluate({ policies, trustDomains, canAsk, request }: EvaluationInput): Evaluation {
  const applicable = policies.filter((policy) => isSeen(policy, request));
  const rules = ORDER.flatMap((action) =>
    applicable
      .filter(({ spec }) => (spec.action ?? "ALLOW") === action)
      .flatMap((policy) => outcomesOf(policy, action, { trustDomains, request })),
  );
  const enforced = (action: Action) => rules.filter((rule) => rule.action === action && !rule.isDryRun);
  const match = (action: Action) => enforced(action).find(({ matches }) => matches);
  const asks = match("CUSTOM");
  const denies = match("DENY");
  const allows = match("ALLOW");
  const decided = (verdict: Evaluation["verdict"], why: Why, decidedBy?: RuleOutcome): Evaluation => ({
    verdict,
    why,
    decidedBy,
    rules,
  });
  const unreadable = rules.find(({ policy }) => policy.spec.unreadable !== undefined);
  if (unreadable !== undefined) return decided("denied", "unreadable", unreadable);
  if (asks !== undefined && !canAsk) return decided("denied", "custom-without-provider", asks);
  if (denies !== undefined) return decided("denied", "denied-by-rule", denies);
  if (allows === undefined && enforced("ALLOW").length > 0) return decided("denied", "no-rule-allows");
  if (asks !== undefined) return decided("asked", "custom", asks);
  return allows === undefined ? decided("allowed", "no-policy") : decided("allowed", "allowed-by-rule", allows);
}

/** An object about the tokens of requests has no say about connections, also while it cannot be read. */
function isSeen({ kind }: PolicyObject, { protocol }: Request): boolean {
  return protocol === "http" || kind !== "RequestAuthentication";
}

/** Rules that nearly decided otherwise: those of an action with the fewest fields that do not fit. */
export function nearestMisses({ rules }: Evaluation, action: Action): readonly RuleOutcome[] {
  const misses = rules.filter(
    (rule) => rule.action === action && !rule.isDryRun && !rule.matches && rule.fields.length > 0,
  );
  const distance = ({ fields }: RuleOutcome) => fields.filter(({ fits }) => !fits).length;
  const least = Math.min(...misses.map(distance));
  return misses.filter((rule) => distance(rule) === least);
}

const ORDER: readonly Action[] = ["CUSTOM", "AUDIT", "DENY", "ALLOW"];

interface Context {
  readonly trustDomains: readonly string[];
  readonly request: Request;
}

function outcomesOf(policy: PolicyObject, action: Action, { trustDomains, request }: Context): RuleOutcome[] {
  const { rules = [] } = policy.spec;
  const common = { policy, action, isDryRun: action !== "CUSTOM" && isDryRun(policy.metadata) };
  if (rules.length === 0) return [{ ...common, rule: undefined, matches: false, fields: [] }];
  const meaning = { namespace: policy.metadata.namespace, trustDomains };
  return rules.map((rule, index) => {
    const { matches, fields } = evaluateRule(rule, `spec.rules[${index}]`, {
      request,
      meaning,
      allows: action === "ALLOW",
    });
    return { ...common, rule: index, matches, fields };
  });
}

interface RuleContext {
  readonly request: Request;
  readonly meaning: Meaning;
  /** Whether what cannot be seen makes the rule match nothing, or is left out of it. */
  readonly allows: boolean;
}

function evaluateRule(
  { from = [], to = [], when = [] }: AuthorizationRule,
  at: string,
  context: RuleContext,
): { readonly matches: boolean; readonly fields: readonly FieldOutcome[] } {
  const sources = from.map(({ source }, i) => fieldsOf(source, `${at}.from[${i}].source`, context));
  const operations = to.map(({ operation }, i) => fieldsOf(operation, `${at}.to[${i}].operation`, context));
  const conditions = when.flatMap(({ key, values = [], notValues = [] }, i) => {
    const lists = { [`${at}.when[${i}].values`]: values, [`${at}.when[${i}].notValues`]: notValues };
    return Object.entries(lists).flatMap(([field, list]) =>
      outcome({ field, attribute: attributeOfKey(key), values: list, negated: field.endsWith("notValues") }, context),
    );
  });
  // A field that cannot be seen counts wherever it stands: none of the alternatives is taken without it.
  const unseen = [...sources, ...operations].flat().filter(({ found }) => found === UNSEEN);
  const fields = [...nearest(sources), ...nearest(operations), ...conditions, ...unseen];
  const distinct = [...new Map(fields.map((one) => [one.field, one])).values()];
  return { matches: distinct.every(({ fits }) => fits), fields: distinct };
}

/** The alternative with the fewest fields that do not fit. */
function nearest(alternatives: readonly (readonly FieldOutcome[])[]): readonly FieldOutcome[] {
  const distance = (fields: readonly FieldOutcome[]) => fields.filter(({ fits }) => !fits).length;
  return alternatives.toSorted((a, b) => distance(a) - distance(b))[0] ?? [];
}

function fieldsOf(
  message: Readonly<Record<string, readonly string[] | undefined>>,
  at: string,
  context: RuleContext,
): readonly FieldOutcome[] {
  return Object.entries(message).flatMap(([name, values = []]) => {
    const [, not, rest = ""] = /^(not)?(.*)$/.exec(name) ?? [];
    const field = not === undefined ? name : rest.charAt(0).toLowerCase() + rest.slice(1);
    const negated = not !== undefined;
    return outcome({ field: `${at}.${name}`, attribute: FIELDS.get(field), values, negated }, context);
  });
}

interface Demand {
  readonly field: string;
  readonly attribute: Attribute | undefined;
  readonly values: readonly string[];
  readonly negated: boolean;
}

/** Shown for what a connection does not tell. */
const UNSEEN = "not seen in TCP";

/** What a field says; nothing where it has no values, or asks for what cannot be seen in a rule that denies. */
function outcome({ field, attribute, values, negated }: Demand, context: RuleContext): readonly FieldOutcome[] {
  const { request, meaning, allows } = context;
  if (values.length === 0) return [];
  const looked = lookAt(attribute, request);
  if (looked === undefined) return allows ? [{ field, values, found: UNSEEN, fits: false }] : [];
  const has = values.some((value) => looked.fits(value, meaning));
  return [{ field, values, found: looked.found, fits: has !== negated }];
}

interface Look {
  readonly found: string;
  readonly fits: (value: string, meaning: Meaning) => boolean;
}

/** What there is of an attribute; undefined when the request does not show it. */
function lookAt(attribute: Attribute | undefined, request: Request): Look | undefined {
  if (attribute === undefined) return undefined;
  if (!attribute.httpOnly) {
    return { found: attribute.shown(request), fits: (value, meaning) => attribute.fits(value, request, meaning) };
  }
  if (request.protocol !== "http") return undefined;
  return { found: attribute.shown(request), fits: (value, meaning) => attribute.fits(value, request, meaning) };
}
