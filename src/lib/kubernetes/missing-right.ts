/** What to say of requests that fail: a right that is missing is named with the rule that gives it. */
import { errorText } from "../mesh-error.ts";
import { ApiError } from "./api-client.ts";
import type { ResourceType } from "./resource-types.ts";

const READING: readonly string[] = ["get", "list", "watch"];
/** What an API server says that decides by RBAC. */
const FORBIDDEN = /cannot (\S+) resource "([^"]+)" in API group "([^"]*)"/;

interface Rule {
  readonly group: string;
  readonly plural: string;
  readonly verbs: readonly string[];
}

/** What to say about objects that cannot be read, or on which that cannot be done: all of these verbs are needed. */
export function troubleText(problem: unknown, { group, plural }: ResourceType, verbs = READING): string {
  return isRefused(problem) ? withRule(problem, { group, plural, verbs }) : errorText(problem);
}

/** The same for any request: the API server's own words tell which right it was. */
export function refusalText(problem: unknown): string {
  const [, verb, plural, group = ""] = (isRefused(problem) && FORBIDDEN.exec(problem.message)) || [];
  if (verb === undefined || plural === undefined) return errorText(problem);
  return withRule(problem, { group, plural, verbs: [verb] });
}

function isRefused(problem: unknown): problem is ApiError {
  return problem instanceof ApiError && problem.status === 403;
}

function withRule(problem: unknown, { group, plural, verbs }: Rule): string {
  const quoted = verbs.map((verb) => `"${verb}"`).join(", ");
  const rule = `apiGroups: ["${group}"], resources: ["${plural}"], verbs: [${quoted}]`;
  return `${errorText(problem)}; add to the ClusterRole of this account: ${rule}`;
}
