/** Label selectors of Kubernetes, with `matchLabels` and `matchExpressions`. */

/** All of it must hold. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly LabelExpression[];
}

/** What one label must be; `operator` is In, NotIn, Exists or DoesNotExist. */
export interface LabelExpression {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

type Labels = Readonly<Record<string, string>>;

/** True when there is nothing to match; such a selector matches everything. */
export function isEmptySelector({ matchLabels = {}, matchExpressions = [] }: LabelSelector): boolean {
  return Object.keys(matchLabels).length === 0 && matchExpressions.length === 0;
}

/** Whether labels match; undefined when the selector is none that Kubernetes would take. */
export function matchesSelector(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Labels,
): boolean | undefined {
  const verdicts = matchExpressions.map((expression) => matchesExpression(expression, labels));
  if (verdicts.includes(undefined)) return undefined;
  return (
    Object.entries(matchLabels).every(([key, value]) => labelOf(labels, key) === value) && !verdicts.includes(false)
  );
}

function matchesExpression({ key, operator, values = [] }: LabelExpression, labels: Labels): boolean | undefined {
  const value = labelOf(labels, key);
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

function labelOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}
