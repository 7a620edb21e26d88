/** AdmissionReview in its two versions: what the API server asks and how it is answered. */
import { isRecord } from "#lib/json/is-record.ts";
import { parseJson } from "#lib/json/parse-json.ts";
import { errorText } from "#lib/mesh-error.ts";

/** What the API server asks about. */
export interface AdmissionRequest {
  readonly uid: string;
  readonly operation: string;
  readonly namespace: string;
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string };
  readonly resource: string;
  /** Undefined when nothing was given. */
  readonly object: unknown;
  readonly dryRun: boolean;
}

/** Whether it may be, and what to change. */
export type AdmissionVerdict =
  | { readonly allowed: true; readonly patch?: readonly object[]; readonly warnings?: readonly string[] }
  | { readonly allowed: false; readonly message: string };

/** A review that can be answered in its own version. */
export interface AdmissionReview {
  readonly apiVersion: string;
  readonly request: AdmissionRequest;
}

const VERSIONS: ReadonlySet<string> = new Set(["admission.k8s.io/v1", "admission.k8s.io/v1beta1"]);
/** Deeper than any object of Kubernetes; what is deeper is meant to exhaust whoever walks it. */
const MAX_DEPTH = 200;
/** Far more than objects have. It bounds the time that one review keeps everything else waiting. */
const MAX_VALUES = 60_000;

/** Reads a review; otherwise says why it is none. */
export function readReview(body: string): AdmissionReview | { readonly refused: string } {
  let review: unknown;
  try {
    review = parseJson(body, MAX_DEPTH);
  } catch (thrown) {
    return { refused: `could not decode body: ${errorText(thrown)}` };
  }
  if (!isRecord(review)) return { refused: "could not decode body: not an object" };
  const { apiVersion, kind, request } = review;
  if (kind !== "AdmissionReview" || typeof apiVersion !== "string" || !VERSIONS.has(apiVersion))
    return { refused: `could not decode object: unsupported type ${JSON.stringify({ apiVersion, kind })}` };
  if (!isRecord(request)) return { refused: "could not decode object: the review has no request" };
  if (hasMoreValues(request.object, MAX_VALUES))
    return { refused: `could not decode object: it has more than ${MAX_VALUES} values` };
  return { apiVersion, request: readRequest(request) };
}

/** The answer, as the API server reads it. */
export function formatVerdict(review: AdmissionReview | undefined, verdict: AdmissionVerdict): string {
  const { apiVersion, request } = review ?? {};
  const type = apiVersion === undefined ? {} : { kind: "AdmissionReview", apiVersion };
  const response = { uid: request?.uid ?? "", allowed: verdict.allowed };
  if (!verdict.allowed) {
    return JSON.stringify({ ...type, response: { ...response, status: { metadata: {}, message: verdict.message } } });
  }
  const { patch, warnings = [] } = verdict;
  const change = patch && { patch: Buffer.from(JSON.stringify(patch)).toString("base64"), patchType: "JSONPatch" };
  return JSON.stringify({ ...type, response: { ...response, ...change, ...(warnings.length > 0 && { warnings }) } });
}

function hasMoreValues(object: unknown, most: number): boolean {
  const open = [object];
  let count = 0;
  for (let next = open.pop(); next !== undefined && count <= most; next = open.pop()) {
    if (typeof next !== "object" || next === null) continue;
    for (const value of Object.values(next)) {
      count++;
      if (typeof value === "object") open.push(value);
    }
  }
  return count > most;
}

function readRequest(request: Readonly<Record<string, unknown>>): AdmissionRequest {
  const kind = isRecord(request.kind) ? request.kind : {};
  const resource = isRecord(request.resource) ? request.resource : {};
  return {
    uid: text(request.uid),
    operation: text(request.operation),
    namespace: text(request.namespace),
    kind: { group: text(kind.group), version: text(kind.version), kind: text(kind.kind) },
    resource: text(resource.resource),
    object: request.object ?? undefined,
    dryRun: request.dryRun === true,
  };
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
