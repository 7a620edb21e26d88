import { checkLabels } from "../../checks/labels.ts";
import { checkDnsLabel } from "../../checks/names.ts";
import { checkPort } from "../../checks/network.ts";
import { formatField } from "../../schema/field-path.ts";
import type { Problem } from "../../schema/problem.ts";
import { checkGatewayNames } from "./check-gateway-names.ts";
import { checkMatchedHeader } from "./check-headers.ts";
import { checkRegexMatch, checkStringMatch } from "./check-string-match.ts";
import type { HttpMatch } from "./schema.ts";

/** One set of conditions on a request. */
export function* checkHttpMatch(match: HttpMatch, at: string): Iterable<Problem> {
  for (const [name, value] of Object.entries(match.headers ?? {})) {
    yield* checkMatchedHeader(name, `${at}.headers`);
    yield* checkStringMatch(value, formatField(`${at}.headers`, name));
  }
  for (const [name, value] of Object.entries(match.withoutHeaders ?? {})) {
    yield* checkMatchedHeader(name, `${at}.withoutHeaders`);
    // Here a bare `*` is no regular expression: it means that the header is there at all.
    if (value.regex !== "*") yield* checkStringMatch(value, formatField(`${at}.withoutHeaders`, name));
  }
  for (const [name, value] of Object.entries(match.queryParams ?? {})) {
    yield* checkStringMatch(value, formatField(`${at}.queryParams`, name));
  }
  yield* checkRegexMatch(match.uri, `${at}.uri`);
  yield* checkStringMatch(match.scheme, `${at}.scheme`);
  yield* checkStringMatch(match.method, `${at}.method`);
  yield* checkStringMatch(match.authority, `${at}.authority`);
  yield* checkWhereFrom(match, at);
}

/** Conditions that routes of all protocols share: port, source and gateway. */
export function* checkWhereFrom(
  match: Pick<HttpMatch, "port" | "sourceLabels" | "gateways" | "sourceNamespace">,
  at: string,
): Iterable<Problem> {
  if ((match.port ?? 0) !== 0) yield* checkPort(match.port ?? 0, `${at}.port`);
  yield* checkLabels(match.sourceLabels, `${at}.sourceLabels`);
  yield* checkGatewayNames(match.gateways, `${at}.gateways`);
  if ((match.sourceNamespace ?? "") !== "") yield* checkDnsLabel(match.sourceNamespace ?? "", `${at}.sourceNamespace`);
}
