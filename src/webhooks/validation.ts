/** `/validate`: objects of Istio's API, refused before they are stored when they could not work. */
import { readVersion, standingOf } from "#config/kinds/kinds.ts";
import { parseObject } from "#config/kinds/parse-object.ts";
import type { Problem } from "#config/schema/problem.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { clipped } from "#lib/text/clipped.ts";
import type { AdmissionRequest, AdmissionVerdict } from "./admission-review.ts";

/** A verdict and, for metrics, why an object was refused, in Istio's words. */
export interface ValidationAnswer {
  readonly verdict: AdmissionVerdict;
  /** Undefined when it passed. */
  readonly reason: string | undefined;
}

const CHECKED_OPERATIONS: ReadonlySet<string> = new Set(["CREATE", "UPDATE"]);
/** Fields beside which an object of Istio has none. */
const FIELDS: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata", "spec", "status"]);

const MOST_PROBLEMS = 50;
const LONGEST_PROBLEM = 1_000;

/** Answers a request. */
export function admitObject(request: AdmissionRequest): ValidationAnswer {
  const { object, operation, dryRun } = request;
  if (!CHECKED_OPERATIONS.has(operation)) return { verdict: { allowed: true }, reason: "unsupported_operation" };
  const refuse = (reason: string, message: string): ValidationAnswer => ({
    verdict: { allowed: false, message: dryRun ? `${message} (dry run)` : message },
    reason,
  });
  if (!isRecord(object)) return refuse("yaml_decode_error", "cannot decode configuration: not an object");
  const type = `${String(object.apiVersion)}, Kind=${String(object.kind)}`;
  // A newer Istio may have brought a version that is not known here: its objects must not be locked out.
  const apiVersion = readVersion(String(object.apiVersion), String(object.kind));
  const standing = standingOf(apiVersion, String(object.kind));
  const isIstios = /^[a-z]+\.istio\.io\//.test(apiVersion);
  if (!isIstios || standing === "not-ours" || standing === "unknown")
    return refuse("unknown_type", `unrecognized type ${type}`);
  const { problems, notYet } = parseObject({ ...object, apiVersion });
  const lines = (severity: string) => readable(problems.filter((one) => one.severity === severity));
  const errors = lines("error");
  if (errors.length > 0) return refuse("invalid_resource", `configuration is invalid: ${errors.join("; ")}`);
  const unknown = Object.keys(object).find((field) => !FIELDS.has(field));
  if (unknown !== undefined)
    return refuse("invalid_resource", `unknown field "${unknown}" on ${type} resource ${nameOf(request)}`);
  const ineffective = notYet ? [`${String(object.kind)} has no effect yet`] : [];
  return { verdict: { allowed: true, warnings: [...ineffective, ...lines("warning")] }, reason: undefined };
}

/** What a person can read of many or long problems. */
function readable(problems: readonly Problem[]): readonly string[] {
  const lines = problems
    .slice(0, MOST_PROBLEMS)
    .map(({ field, message }) => clipped(`${field} ${message}`.trim(), LONGEST_PROBLEM));
  const more = problems.length - lines.length;
  return more > 0 ? [...lines, `and ${more} more`] : lines;
}

function nameOf({ namespace, object }: AdmissionRequest): string {
  const metadata = isRecord(object) && isRecord(object.metadata) ? object.metadata : {};
  return `${namespace}/${String(metadata.name ?? "")}`;
}
