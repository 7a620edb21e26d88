/** What a route does to a request besides sending it on. */
import { STATUS_CODES } from "node:http";
import { checkDuration, checkNotNegative, checkPercent, checkPercentage } from "../../checks/amounts.ts";
import { checkPort } from "../../checks/network.ts";
import { error, type Problem, warning } from "../../schema/problem.ts";
import { checkDestination } from "./check-destinations.ts";
import { checkCorsHeader } from "./check-headers.ts";
import { checkRegex, checkRegexMatch } from "./check-string-match.ts";
import type {
  CorsPolicy,
  HttpDirectResponse,
  HttpFault,
  HttpMirror,
  HttpRedirect,
  HttpRetry,
  HttpRewrite,
} from "./schema.ts";

const CORS_METHODS: ReadonlySet<string> = new Set("GET HEAD POST PUT PATCH DELETE CONNECT OPTIONS TRACE *".split(" "));
const GRPC_STATUSES: ReadonlySet<string> = new Set(
  (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED " +
    "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"
  ).split(" "),
);
/** What Envoy knows as a reason to retry; HTTP statuses are reasons too. */
const RETRY_REASONS: ReadonlySet<string> = new Set(
  (
    "5xx gateway-error reset reset-before-request connect-failure retriable-4xx refused-stream retriable-status-codes " +
    "retriable-headers envoy-ratelimited http3-post-connect-failure " +
    "cancelled deadline-exceeded internal resource-exhausted unavailable"
  ).split(" "),
);
const KIB = 1024;

/** Answers to browsers that ask what other sites may do. */
export function* checkCorsPolicy(policy: CorsPolicy | undefined, at: string): Iterable<Problem> {
  for (const [i, origin] of (policy?.allowOrigins ?? []).entries()) {
    if ((origin.exact ?? origin.prefix ?? origin.regex ?? "") === "") {
      yield error(`${at}.allowOrigins[${i}]`, "needs one of exact, prefix, regex");
    } else yield* checkRegexMatch(origin, `${at}.allowOrigins[${i}]`);
  }
  for (const [i, method] of (policy?.allowMethods ?? []).entries()) {
    if (!CORS_METHODS.has(method)) yield error(`${at}.allowMethods[${i}]`, `must be an HTTP method, not "${method}"`);
  }
  for (const list of ["allowHeaders", "exposeHeaders"] as const) {
    for (const [i, name] of (policy?.[list] ?? []).entries()) yield* checkCorsHeader(name, `${at}.${list}[${i}]`);
  }
  yield* checkDuration(policy?.maxAge, `${at}.maxAge`);
  if ((policy?.maxAge ?? 0) % 1000 !== 0) yield error(`${at}.maxAge`, "must be a whole number of seconds");
}

/** Faults that are made on purpose. */
export function* checkFault(fault: HttpFault | undefined, at: string): Iterable<Problem> {
  if (fault === undefined) return;
  const { abort, delay } = fault;
  if (abort === undefined && delay === undefined) yield error(at, "needs an abort, a delay, or both");
  yield* checkPercentage(abort?.percentage, `${at}.abort.percentage`);
  if (abort?.grpcStatus !== undefined && !GRPC_STATUSES.has(abort.grpcStatus)) {
    yield error(`${at}.abort.grpcStatus`, `must be a gRPC status such as NOT_FOUND, not "${abort.grpcStatus}"`);
  }
  if (abort?.http2Error !== undefined) yield error(`${at}.abort.http2Error`, "is not supported");
  if (abort?.httpStatus !== undefined) yield* checkHttpStatus(abort.httpStatus, `${at}.abort.httpStatus`);
  if (abort !== undefined && (abort.grpcStatus ?? abort.http2Error ?? abort.httpStatus) === undefined) {
    yield warning(`${at}.abort`, "has no effect without httpStatus or grpcStatus");
  }
  yield* checkPercentage(delay?.percentage, `${at}.delay.percentage`);
  yield* checkDuration(delay?.fixedDelay, `${at}.delay.fixedDelay`);
  if (delay?.exponentialDelay !== undefined) yield error(`${at}.delay.exponentialDelay`, "is not supported");
}

/** Copies of requests. */
export function* checkMirrors(mirrors: readonly HttpMirror[], at: string): Iterable<Problem> {
  for (const [i, { destination, percentage }] of mirrors.entries()) {
    yield* checkDestination(destination, `${at}[${i}].destination`);
    yield* checkPercent(percentage?.value, `${at}[${i}].percentage.value`);
  }
}

/** An answer that sends the caller elsewhere. */
export function* checkRedirect(redirect: HttpRedirect | undefined, at: string): Iterable<Problem> {
  if (redirect === undefined) return;
  const { uri = "", authority = "", port, derivePort, scheme = "", redirectCode = 0 } = redirect;
  if (uri === "" && authority === "" && scheme === "" && port === undefined && derivePort === undefined) {
    yield error(at, "needs a uri, an authority, a scheme or a port");
  }
  if (redirectCode !== 0 && (redirectCode < 300 || redirectCode > 399)) {
    yield error(`${at}.redirectCode`, `must be from 300 to 399, not ${redirectCode}`);
  }
  if (!["", "http", "https"].includes(scheme)) yield error(`${at}.scheme`, `must be http or https, not "${scheme}"`);
  if ((port ?? 0) !== 0) yield* checkPort(port ?? 0, `${at}.port`);
}

/** An answer that is fixed. */
export function* checkDirectResponse(response: HttpDirectResponse | undefined, at: string): Iterable<Problem> {
  if (response === undefined) return;
  const { body, status } = response;
  const size =
    body?.bytes === undefined ? Buffer.byteLength(body?.string ?? "") : Buffer.byteLength(body.bytes, "base64");
  if (size > KIB * KIB) yield error(`${at}.body`, "must be at most 1 MiB");
  else if (size > 100 * KIB) yield warning(`${at}.body`, "is large, and every proxy gets it: prefer less than 100 KiB");
  yield* checkHttpStatus(status, `${at}.status`);
}

/** Retries of failed requests. */
export function* checkRetry(retry: HttpRetry | undefined, at: string): Iterable<Problem> {
  if (retry === undefined) return;
  const { attempts = 0, perTryTimeout, retryOn = "", retryRemoteLocalities, backoff } = retry;
  yield* checkNotNegative(attempts, `${at}.attempts`);
  const hasSettings = perTryTimeout !== undefined || retryOn !== "" || retryRemoteLocalities !== undefined;
  if (attempts === 0 && hasSettings) yield error(`${at}.attempts`, "must be above 0 when there are other settings");
  yield* checkDuration(perTryTimeout, `${at}.perTryTimeout`);
  yield* checkDuration(backoff, `${at}.backoff`);
  for (const reason of retryOn === "" ? [] : retryOn.split(",")) {
    if (!RETRY_REASONS.has(reason) && !(/^\d+$/.test(reason) && reason in STATUS_CODES)) {
      yield error(`${at}.retryOn`, `must list HTTP statuses or ${[...RETRY_REASONS].join(", ")}, not "${reason}"`);
    }
  }
}

/** A path or host that is exchanged on the way. */
export function* checkRewrite(rewrite: HttpRewrite | undefined, at: string): Iterable<Problem> {
  if (rewrite === undefined) return;
  const { uri = "", authority = "", uriRegexRewrite: regex } = rewrite;
  if (uri !== "" && regex !== undefined) yield error(at, "cannot have both uri and uriRegexRewrite");
  if (uri === "" && authority === "" && regex === undefined) {
    yield error(at, "needs a uri, a uriRegexRewrite or an authority");
  }
  if (regex === undefined) return;
  if ((regex.match ?? "") === "" || (regex.rewrite ?? "") === "") {
    yield error(`${at}.uriRegexRewrite`, "needs both match and rewrite");
  } else yield* checkRegex(regex.match ?? "", `${at}.uriRegexRewrite.match`);
}

function* checkHttpStatus(status: number, at: string): Iterable<Problem> {
  if (status < 200 || status > 600) yield error(at, `must be an HTTP status from 200 to 599, not ${status}`);
}
