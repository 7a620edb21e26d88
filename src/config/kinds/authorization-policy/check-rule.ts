/** The parts of an authorization rule: who calls, what is asked for, and conditions on attributes. */

import { withoutEnds } from "@mizzen/go-text/trim";
import { checkSubnet } from "../../checks/network.ts";
import { error, type Problem } from "../../schema/problem.ts";
import { hasLineBreak } from "../virtual-service/check-headers.ts";
import { isPathTemplate } from "./authorization-values.ts";
import type { AuthorizationCondition, AuthorizationOperation, AuthorizationSource } from "./schema.ts";

/** Envoy limits the size of the regular expressions that some values become. */
const MAX_VALUE = 4096;
/** Envoy's limit for templates of paths. */
const MAX_TEMPLATE = 256;
const MAX_ACCOUNTS = 16;
const MAX_ACCOUNT = 320;
/** Characters of a segment of a path (RFC 3986), beside which a template may stand. */
const SEGMENT = /^[a-zA-Z0-9\-._~%!$&'()+,;:@=]+$/;

type Values = readonly string[];
type Check = (values: Values, at: string) => Iterable<Problem>;

/** Who calls. */
export function* checkSource(source: AuthorizationSource, at: string): Iterable<Problem> {
  const { principals, notPrincipals, namespaces, notNamespaces, serviceAccounts, notServiceAccounts } = source;
  const has = (...lists: readonly (Values | undefined)[]) => lists.some((values) => (values ?? []).length > 0);
  if (has(principals, notPrincipals, namespaces, notNamespaces) && has(serviceAccounts, notServiceAccounts)) {
    yield error(`${at}.serviceAccounts`, "cannot be set together with principals or namespaces");
  }
  yield* checkFields(source, at, (field) => {
    if (/ipblocks$/i.test(field)) return checkSubnets;
    return /serviceaccounts$/i.test(field) ? checkAccounts : undefined;
  });
}

/** What is asked for. */
export function* checkOperation(operation: AuthorizationOperation, at: string): Iterable<Problem> {
  yield* checkFields(operation, at, (field) => {
    if (/ports$/i.test(field)) return checkPorts;
    return /paths$/i.test(field) ? checkPaths : undefined;
  });
}

/** An attribute and its values. */
export function* checkCondition({ key, values, notValues }: AuthorizationCondition, at: string): Iterable<Problem> {
  if (key === "") yield error(`${at}.key`, "is required");
  else if ((values ?? []).length === 0 && (notValues ?? []).length === 0) {
    yield error(at, `needs values or notValues for "${key}"`);
  } else {
    const wrong = wrongKey(key);
    if (wrong !== undefined) yield error(`${at}.key`, wrong);
    yield* checkFields({ values, notValues }, at, () => VALUE_CHECKS.get(key));
  }
}

/** All lists of a message: one of them is needed, none may hold an empty value, and each has a check of its own. */
function* checkFields(
  message: Readonly<Record<string, Values | undefined>>,
  at: string,
  checkOf: (field: string) => Check | undefined,
): Iterable<Problem> {
  const lists = Object.entries(message).filter((entry): entry is [string, Values] => entry[1] !== undefined);
  if (!lists.some(([, values]) => values.length > 0)) yield error(at, "must not be empty");
  for (const [field, values] of lists) {
    for (const [i, value] of values.entries()) {
      if (value === "") yield error(`${at}.${field}[${i}]`, "must not be empty");
      if (value.length > MAX_VALUE) yield error(`${at}.${field}[${i}]`, `must be at most ${MAX_VALUE} characters long`);
    }
    yield* checkOf(field)?.(values, `${at}.${field}`) ?? [];
  }
}

function* checkSubnets(values: Values, at: string): Iterable<Problem> {
  for (const [i, value] of values.entries()) if (value !== "") yield* checkSubnet(value, `${at}[${i}]`);
}

function* checkPorts(values: Values, at: string): Iterable<Problem> {
  for (const [i, value] of values.entries()) {
    if (value !== "" && !(/^\d{1,5}$/.test(value) && Number(value) <= 65535)) {
      yield error(`${at}[${i}]`, `must be a port from 0 to 65535, not "${value}"`);
    }
  }
}

function* checkAccounts(values: Values, at: string): Iterable<Problem> {
  if (values.length > MAX_ACCOUNTS) yield error(at, `can have at most ${MAX_ACCOUNTS} values`);
  for (const [i, value] of values.entries()) {
    if (value.includes("*")) yield error(`${at}[${i}]`, "must not contain a wildcard");
    else if (value.length > MAX_ACCOUNT) yield error(`${at}[${i}]`, `must be at most ${MAX_ACCOUNT} characters long`);
    else if (value !== "" && !/^[^/]+(\/[^/]+)?$/.test(value)) {
      yield error(`${at}[${i}]`, `must be "account" or "namespace/account", not "${value}"`);
    }
  }
}

/** A path may have `{*}` for a segment and, last of its templates, `{**}` for any number of segments. */
function* checkPaths(values: Values, at: string): Iterable<Problem> {
  for (const [i, path] of values.entries()) {
    const isTemplate = isPathTemplate(path);
    if (isTemplate) yield* checkTemplate(path, `${at}[${i}]`);
    let ended = false;
    for (const segment of withoutEnds(path, "/").split("/")) {
      if (segment === "{*}" || segment === "{**}") {
        if (ended) yield error(`${at}[${i}]`, `must not have a template behind {**}: "${path}"`);
        ended ||= segment === "{**}";
      } else if (/[{}]/.test(segment)) {
        yield error(`${at}[${i}]`, `must have braces as {*} and {**} between slashes only: "${path}"`);
      } else if (isTemplate && !SEGMENT.test(segment)) {
        yield error(`${at}[${i}]`, `has a segment that cannot stand beside a template: "${segment}"`);
      }
    }
  }
}

/** Envoy ends when it gets a template with an empty segment, and rejects long ones. */
function* checkTemplate(path: string, at: string): Iterable<Problem> {
  if (!path.startsWith("/") || path.includes("//")) {
    yield error(at, `must start with a slash and have no empty segment beside a template: "${path}"`);
  }
  if (path.replace(/\{(\*\*?)\}/g, "$1").length > MAX_TEMPLATE) {
    yield error(at, `must be at most ${MAX_TEMPLATE} characters long beside a template`);
  }
}

const VALUE_CHECKS: ReadonlyMap<string, Check> = new Map([
  ["source.ip", checkSubnets],
  ["remote.ip", checkSubnets],
  ["destination.ip", checkSubnets],
  ["destination.port", checkPorts],
  ["source.serviceAccount", checkAccounts],
]);

const PLAIN_KEYS: ReadonlySet<string> = new Set([
  ...VALUE_CHECKS.keys(),
  "source.namespace",
  "source.principal",
  "request.auth.principal",
  "request.auth.audiences",
  "request.auth.presenter",
  "connection.sni",
]);
/** Attributes of which one part is named in brackets. */
const KEYS_WITH_NAME = ["request.headers", "request.auth.claims", "experimental.envoy.filters."] as const;
const REPLACED: readonly (readonly [prefix: RegExp, by: string])[] = [
  [/^destination\.namespace$/, "the namespace of the policy"],
  [/^destination\.labels/, "the selector of the policy"],
  [/^destination\.(name|user)$/, "the selector of the policy"],
];

/** Whether something in brackets stands at the end, and something before it. */
function hasNamedPart(key: string): boolean {
  const open = key.indexOf("[", 1);
  return open > 0 && key.endsWith("]") && open < key.length - 2;
}

function wrongKey(key: string): string | undefined {
  if (PLAIN_KEYS.has(key)) return undefined;
  if (key.startsWith("request.headers") && hasLineBreak(key)) return "must name a header";
  if (KEYS_WITH_NAME.some((prefix) => key.startsWith(prefix))) {
    return hasNamedPart(key) ? undefined : `must name a part in brackets, as request.headers[User-Agent], not "${key}"`;
  }
  const replaced = REPLACED.find(([prefix]) => prefix.test(key));
  return replaced === undefined ? `is not a known attribute: "${key}"` : `cannot be "${key}": use ${replaced[1]}`;
}
