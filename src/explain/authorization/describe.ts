/** An evaluation in words. */
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { type Evaluation, type FieldOutcome, nearestMisses, type RuleOutcome, type Why } from "./evaluate.ts";

/** Where a field of an object stands, as `file:line`; empty when nobody knows. */
export type PlaceOf = (object: ConfigObject, field: string) => string;

const REASONS: Readonly<Record<Why, string>> = {
  unreadable: "an object cannot be read, so everything is denied that it could have denied",
  custom: "a rule of a CUSTOM policy fits, so its provider is asked; nothing else denies",
  "custom-without-provider": "a rule of a CUSTOM policy fits, but its provider cannot be asked",
  "denied-by-rule": "a rule of a DENY policy fits",
  "allowed-by-rule": "a rule of an ALLOW policy fits, and none of a DENY policy",
  "no-rule-allows": "there are ALLOW policies, and none of their rules fits",
  "no-policy": "no DENY rule fits, and there is no ALLOW policy",
};

/** Lines that say what was decided, by what, and what would change it. */
export function describeEvaluation(evaluation: Evaluation, placeOf: PlaceOf): readonly string[] {
  const { verdict, why, decidedBy } = evaluation;
  const tried = evaluation.rules.filter(({ isDryRun, matches }) => isDryRun && matches);
  return [
    `verdict: ${verdict.toUpperCase()}`,
    `because: ${REASONS[why]}`,
    ...(decidedBy === undefined ? [] : ruleLines("decided by:", decidedBy, placeOf)),
    ...changeLines(evaluation, placeOf),
    ...tried.flatMap((rule) => ruleLines(`would ${rule.action.toLowerCase()} if it were no dry run:`, rule, placeOf)),
  ];
}

function changeLines(evaluation: Evaluation, placeOf: PlaceOf): readonly string[] {
  const { why, decidedBy } = evaluation;
  switch (why) {
    case "unreadable":
      return [`to change it: repair or delete the object: ${decidedBy?.policy.spec.unreadable ?? ""}`];
    case "no-rule-allows": {
      const near = nearestMisses(evaluation, "ALLOW");
      if (near.length === 0) return ["to change it: add a rule to an ALLOW policy; those there are have none"];
      return near.flatMap((rule) => ["to change it, nearest:", ...missLines(rule, placeOf)]);
    }
    case "denied-by-rule":
    case "custom-without-provider": {
      const fields = decidedBy?.fields ?? [];
      if (fields.length === 0) return ["to change it: the rule fits every request; remove it"];
      return [
        "to change it: one of these must not fit",
        ...fields.map((field) => fieldLine(field, decidedBy, placeOf)),
      ];
    }
    default: {
      const near = nearestMisses(evaluation, "DENY");
      return near.flatMap((rule) => ["would be denied, nearest:", ...missLines(rule, placeOf)]);
    }
  }
}

function missLines(rule: RuleOutcome, placeOf: PlaceOf): readonly string[] {
  const missing = rule.fields.filter(({ fits }) => !fits);
  return [`  ${nameOf(rule, placeOf)} does not fit:`, ...missing.map((field) => fieldLine(field, rule, placeOf))];
}

function ruleLines(title: string, rule: RuleOutcome, placeOf: PlaceOf): readonly string[] {
  return [`${title} ${nameOf(rule, placeOf)}`, ...rule.fields.map((field) => fieldLine(field, rule, placeOf))];
}

function nameOf({ policy, rule, action }: RuleOutcome, placeOf: PlaceOf): string {
  const place = placeOf(policy, rule === undefined ? "spec" : `spec.rules[${rule}]`);
  return `${objectKey(policy)} rule ${rule ?? 0} (${action})${place === "" ? "" : ` at ${place}`}`;
}

function fieldLine(
  { field, values, found, fits }: FieldOutcome,
  rule: RuleOutcome | undefined,
  placeOf: PlaceOf,
): string {
  const place = rule === undefined ? "" : placeOf(rule.policy, field);
  return `    ${field}: [${values.join(", ")}], ${fits ? "" : "but "}the request has ${found}${place === "" ? "" : ` (${place})`}`;
}
