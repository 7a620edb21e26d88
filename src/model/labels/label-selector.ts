/** Label selectors of Kubernetes, with `matchLabels` and `matchExpressions`. */
import { hasLabels, type Labels } from "./labels.ts";

/** All of it must hold; one that asks for nothing takes everything. */
export interface LabelSelector {
  readonly matchLabels?: Labels | undefined;
  readonly matchExpressions?: readonly LabelExpression[] | undefined;
}

export interface LabelExpression {
  readonly key?: string | undefined;
  /** In, NotIn, Exists or DoesNotExist. */
  readonly operator?: string | undefined;
  readonly values?: readonly string[] | undefined;
}

/** True when there is nothing to match; such a selector matches everything. */
export function isEmptySelector({ matchLabels = {}, matchExpressions = [] }: LabelSelector): boolean {
  return Object.keys(matchLabels).length === 0 && matchExpressions.length === 0;
}

/** Whether labels match; undefined when the selector is none that Kubernetes would take. */
export function matchesSelector(
  { matchLabels, matchExpressions = [] }: LabelSelector,
  labels: Labels,
): boolean | undefined {
  const verdicts = matchExpressions.map((expression) => matchesExpression(expression, labels));
  if (verdicts.includes(undefined)) return undefined;
  return hasLabels(labels, matchLabels) && !verdicts.includes(false);
}

function matchesExpression({ key = "", operator, values = [] }: LabelExpression, labels: Labels): boolean | undefined {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "In":
      return values.length === 0 ? undefined : value !== undefined && values.includes(value);
    case "NotIn":
      return values.length === 0 ? undefined : value === undefined || !values.includes(value);
    case "Exists":
      return values.length > 0 ? undefined : value !== undefined;
    case "DoesNotExist":
      return values.length > 0 ? undefined : value === undefined;
    default:
      return undefined;
  }
}
