/** Requests of the API server as values: what comes in and what goes out, without a socket. */
import { clipped } from "#lib/text/clipped.ts";
import { type AdmissionRequest, type AdmissionVerdict, formatVerdict, readReview } from "./admission-review.ts";
import { admitPod, type InjectionContext } from "./injection.ts";
import type { WebhookMetric } from "./metrics.ts";
import { objectLabels } from "./object-labels.ts";
import { admitObject } from "./validation.ts";

/** What the API server sends. */
export interface WebhookRequest {
  readonly path: string;
  readonly contentType: string;
  readonly body: string;
}

/** What it gets. */
export interface WebhookResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** What webhooks need while they answer. */
export interface WebhookContext {
  /** Undefined where nothing is injected: then there is no such page. */
  readonly injection: (() => InjectionContext) | undefined;
  readonly count: (name: WebhookMetric, labels?: Readonly<Record<string, string>>) => void;
  readonly log: (message: string, fields: Readonly<Record<string, string>>) => void;
}

/** Answers a request. What is no review is refused as istiod refuses it, so that the API server tells the user. */
export function handleWebhook(request: WebhookRequest, context: WebhookContext): WebhookResponse {
  const { injection } = context;
  const isInjection = request.path === "/inject" || request.path.startsWith("/inject/");
  if (isInjection && injection !== undefined) return handleInjection(request, { ...context, injection });
  if (request.path === "/validate") return handleValidation(request, context);
  return plain(404, "404 page not found\n");
}

function handleInjection(
  request: WebhookRequest,
  { count, log, injection }: WebhookContext & { readonly injection: () => InjectionContext },
): WebhookResponse {
  count("sidecar_injection_requests_total");
  const failed = (reason: string, namespace = "") => {
    count("sidecar_injection_failure_total");
    log("injection failed", { path: request.path, namespace: loggable(namespace), reason: loggable(reason) });
  };
  return answer(
    request,
    (_, reason) => failed(reason),
    (asked) => {
      const { verdict, outcome, reason } = admitPod(asked, request.path, injection);
      if (outcome === "failed") failed(reason, asked.namespace);
      else count(outcome === "skipped" ? "sidecar_injection_skip_total" : "sidecar_injection_success_total");
      return verdict;
    },
  );
}

function handleValidation(request: WebhookRequest, { count, log }: WebhookContext): WebhookResponse {
  const refused = (status: number) => {
    if (status !== 200) count("galley_validation_http_error", { status: String(status) });
  };
  return answer(request, refused, (asked) => {
    const { verdict, reason } = admitObject(asked);
    const labels = objectLabels(asked);
    if (reason === undefined) count("galley_validation_passed", labels);
    else count("galley_validation_failed", { ...labels, reason });
    if (!verdict.allowed)
      log("object refused", { namespace: loggable(asked.namespace), reason: loggable(verdict.message) });
    return verdict;
  });
}

/** `onRefused` hears of requests that are none, with the HTTP status that they get. */
function answer(
  { body, contentType }: WebhookRequest,
  onRefused: (status: number, reason: string) => void,
  admit: (asked: AdmissionRequest) => AdmissionVerdict,
): WebhookResponse {
  const refuse = (status: number, reason: string) => {
    onRefused(status, reason);
    return plain(status, `${reason}\n`);
  };
  if (body === "") return refuse(400, "no body found");
  if (contentType !== "application/json") return refuse(415, "invalid Content-Type, want `application/json`");
  const review = readReview(body);
  if ("refused" in review) {
    onRefused(200, review.refused);
    return json(formatVerdict(undefined, { allowed: false, message: review.refused }));
  }
  return json(formatVerdict(review, admit(review.request)));
}

/** Callers are not authenticated: they must not be able to fill the log. */
function loggable(text: string): string {
  return clipped(text, MOST_LOGGED);
}

const MOST_LOGGED = 1_000;

function json(body: string): WebhookResponse {
  return { status: 200, contentType: "application/json", body };
}

function plain(status: number, body: string): WebhookResponse {
  return { status, contentType: "text/plain; charset=utf-8", body };
}
