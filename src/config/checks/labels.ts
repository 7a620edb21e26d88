/** Labels and the selectors over them. */

import { formatField } from "../schema/field-path.ts";
import { error, type Problem, warning } from "../schema/problem.ts";

const NAME = "(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const DNS_LABEL = "[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?";
const KEY = new RegExp(`^(${DNS_LABEL}(?:\\.${DNS_LABEL})*/)?(${NAME})$`);
const VALUE = new RegExp(`^(?:${NAME})?$`);
const MAX_PREFIX = 253;
const MAX_NAME = 63;

type Labels = Readonly<Record<string, string>>;

/** Labels as Kubernetes allows them. */
export function* checkLabels(labels: Labels | undefined, at: string): Iterable<Problem> {
  for (const [key, value] of Object.entries(labels ?? {})) {
    const [, prefix = "", name = ""] = KEY.exec(key) ?? [];
    if (name === "" || name.length > MAX_NAME || prefix.length - 1 > MAX_PREFIX) {
      yield error(formatField(at, key), "is not a valid key of a label");
    }
    if (!VALUE.test(value)) yield error(formatField(at, key), `must be a valid value of a label, not "${value}"`);
  }
}

/**
 * Labels by which workloads are selected: wildcards have no meaning there. `whenEmpty` tells what no labels at all mean, which
 * hardly anybody wants.
 */
export function* checkSelector(
  labels: Labels | undefined,
  at: string,
  whenEmpty = "selects everything",
): Iterable<Problem> {
  const entries = Object.entries(labels ?? {});
  for (const [key, value] of entries) {
    if (key === "") yield error(at, "must not have an empty key");
    if (`${key}${value}`.includes("*")) yield error(formatField(at, key), "must not contain a wildcard");
  }
  if (entries.length === 0) yield warning(at, `${whenEmpty}, since it is empty`);
}
