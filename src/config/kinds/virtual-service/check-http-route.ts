import { checkDuration, checkPercent } from "../../checks/amounts.ts";
import { error, type Problem, warning } from "../../schema/problem.ts";
import { checkDestination, checkRouteDestinations } from "./check-destinations.ts";
import { checkHeaders, isAuthority } from "./check-headers.ts";
import {
  checkCorsPolicy,
  checkDirectResponse,
  checkFault,
  checkMirrors,
  checkRedirect,
  checkRetry,
  checkRewrite,
} from "./check-http-actions.ts";
import { checkHttpMatch } from "./check-http-match.ts";
import type { HttpRoute } from "./schema.ts";

/** One HTTP route. Routes of a delegate cannot delegate further. */
export function* checkHttpRoute(route: HttpRoute, at: string, isDelegate: boolean): Iterable<Problem> {
  if (!isDelegate && route.delegate !== undefined) yield* checkDelegating(route, at);
  else yield* checkAction(route, at, isDelegate);
  for (const [i, match] of (route.match ?? []).entries()) yield* checkHttpMatch(match, `${at}.match[${i}]`);
  yield* checkHeaders(route.headers, `${at}.headers`);
  yield* checkCorsPolicy(route.corsPolicy, `${at}.corsPolicy`);
  yield* checkFault(route.fault, `${at}.fault`);
  yield* checkMirroring(route, at);
  yield* checkRedirect(route.redirect, `${at}.redirect`);
  yield* checkDirectResponse(route.directResponse, `${at}.directResponse`);
  yield* checkRetry(route.retries, `${at}.retries`);
  yield* checkRewrite(route.rewrite, `${at}.rewrite`);
  yield* checkAuthority(route, at);
  yield* checkRouteDestinations(route.route ?? [], `${at}.route`);
  yield* checkDuration(route.timeout, `${at}.timeout`);
}

function* checkDelegating(route: HttpRoute, at: string): Iterable<Problem> {
  if (route.redirect !== undefined) yield error(`${at}.redirect`, "cannot be set together with delegate");
  if (route.route !== undefined) yield error(`${at}.route`, "cannot be set together with delegate");
}

/** A route does one thing: send on, redirect, or answer. What changes a request on its way needs the first. */
function* checkAction(route: HttpRoute, at: string, isDelegate: boolean): Iterable<Problem> {
  if (isDelegate && route.delegate !== undefined) yield error(`${at}.delegate`, "cannot be set in a delegate");
  const sendsOn = (route.route ?? []).length > 0;
  const answer = route.redirect !== undefined ? "redirect" : route.directResponse !== undefined ? "directResponse" : "";
  if (answer === "") {
    if (!sendsOn) yield error(at, "needs a route, a redirect or a directResponse");
    return;
  }
  const others = { route: sendsOn, fault: route.fault, rewrite: route.rewrite };
  for (const [name, value] of Object.entries(others)) {
    if (value !== undefined && value !== false) yield error(`${at}.${name}`, `cannot be set together with ${answer}`);
  }
  if (answer === "redirect" && route.directResponse !== undefined) {
    yield error(`${at}.directResponse`, "cannot be set together with redirect");
  }
}

function* checkMirroring(route: HttpRoute, at: string): Iterable<Problem> {
  const { mirror, mirrors = [], mirrorPercent, mirrorPercentage } = route;
  yield* checkDestination(mirror, `${at}.mirror`);
  yield* checkMirrors(mirrors, `${at}.mirrors`);
  if (mirror !== undefined && mirrors.length > 0 && route.delegate === undefined) {
    yield error(`${at}.mirrors`, "cannot be set together with mirror");
  }
  yield* checkPercent(mirrorPercent, `${at}.mirrorPercent`);
  yield* checkPercent(mirrorPercentage?.value, `${at}.mirrorPercentage.value`);
  if (mirrorPercent !== undefined) yield warning(`${at}.mirrorPercent`, "is deprecated: use mirrorPercentage");
}

/** The host of a request can be exchanged by a rewrite or by a header, but only once. */
function* checkAuthority(route: HttpRoute, at: string): Iterable<Problem> {
  const { set = {}, add = {} } = route.headers?.request ?? {};
  const names = [...Object.keys(set), ...Object.keys(add)].filter(isAuthority);
  const times = names.length + ((route.rewrite?.authority ?? "") === "" ? 0 : 1);
  if (times > 1) yield error(`${at}.headers.request`, "sets the authority more than once");
}
