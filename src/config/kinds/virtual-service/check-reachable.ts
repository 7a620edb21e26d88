/** Routes and matches of a VirtualService that no request can reach: the first that fits counts. */

import { type Problem, warning } from "../../schema/problem.ts";
import type { HttpMatch, StringMatch, VirtualService } from "./schema.ts";

/** Warns of routes behind one without conditions, and of conditions that an earlier route has already. */
export function* checkReachable({ http = [], tls = [], tcp = [] }: VirtualService): Iterable<Problem> {
  yield* checkOrder(http, "spec.http");
  yield* checkOrder(tcp, "spec.tcp");
  yield* checkOrder(tls, "spec.tls");
  yield* checkPrefixes(http);
}

function* checkOrder(
  routes: readonly { readonly match?: readonly object[] | undefined }[],
  at: string,
): Iterable<Problem> {
  const seen = new Set<string>();
  let open = -1;
  for (const [i, { match = [] }] of routes.entries()) {
    if (open >= 0) yield warning(`${at}[${i}]`, `is never reached: ${at}[${open}] takes everything`);
    if (match.length === 0 && open < 0) open = i;
    if (open >= 0) continue;
    let repeated = 0;
    for (const [j, condition] of match.entries()) {
      const text = canonical(conditionsOf(condition));
      if (seen.has(text)) {
        repeated++;
        yield warning(`${at}[${i}].match[${j}]`, "has no effect: an earlier match is the same");
      }
      seen.add(text);
    }
    if (repeated === match.length)
      yield warning(`${at}[${i}]`, "is never reached: earlier routes have all its matches");
  }
}

/** What a match asks for: its name is no condition, nor is what is empty, 0 or false. */
function conditionsOf(match: object): object {
  const asksNothing = (value: unknown) => !value || (typeof value === "object" && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(match).filter(([name, value]) => name !== "name" && !asksNothing(value)));
}

/** Text that is equal for equal data, whatever the order of its keys. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

interface PrefixMatch {
  readonly at: string;
  readonly match: HttpMatch;
  readonly prefix: string;
}

/** Pairs of matches of one object that are compared at most: whoever stores one with thousands must not stop the others. */
const MOST_PAIRS = 100_000;

/** `/debug` takes what a later `/debugs` waits for, if the other conditions are no stricter. */
function* checkPrefixes(routes: NonNullable<VirtualService["http"]>): Iterable<Problem> {
  const earlier = new Map<string, PrefixMatch[]>();
  const lengths = new Set<number>();
  let pairs = 0;
  for (const later of prefixMatches(routes)) {
    const { at, prefix } = later;
    const cover = [...lengths]
      .filter((length) => length < prefix.length)
      .values()
      .flatMap((length) => earlier.get(prefix.slice(0, length)) ?? [])
      .take(MOST_PAIRS - pairs)
      .find((wider) => {
        pairs++;
        return covers(wider.match, later.match);
      });
    if (cover !== undefined)
      yield warning(at, `has no effect: "${prefix}" is covered by "${cover.prefix}" of ${cover.at}`);
    const same = earlier.get(prefix);
    if (same === undefined) earlier.set(prefix, [later]);
    else same.push(later);
    lengths.add(prefix.length);
  }
}

function prefixMatches(routes: NonNullable<VirtualService["http"]>): readonly PrefixMatch[] {
  return routes.flatMap(({ match = [] }, i) =>
    match.flatMap((condition, j): PrefixMatch[] => {
      const prefix = condition.uri?.prefix ?? "";
      return prefix === "" ? [] : [{ at: `spec.http[${i}].match[${j}]`, match: condition, prefix }];
    }),
  );
}

function covers(a: HttpMatch, b: HttpMatch): boolean {
  return (
    (a.port ?? 0) === (b.port ?? 0) &&
    isNoStricter(a.method, b.method, "exact:GET") &&
    isNoStricter(a.authority, b.authority) &&
    areNoStricter(a.headers, b.headers) &&
    areNoStricter(a.queryParams, b.queryParams) &&
    areNoStricter(a.withoutHeaders, b.withoutHeaders)
  );
}

function areNoStricter(
  a: Readonly<Record<string, StringMatch>> = {},
  b: Readonly<Record<string, StringMatch>> = {},
): boolean {
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && isNoStricter(a[name], b[name]))
  );
}

function isNoStricter(a: StringMatch | undefined, b: StringMatch | undefined, unset = ""): boolean {
  return (matchText(a) || unset).startsWith(matchText(b) || unset);
}

function matchText(match: StringMatch | undefined): string {
  if ((match?.exact ?? "") !== "") return `exact:${match?.exact}`;
  return (match?.prefix ?? "") === "" ? "" : `prefix:${match?.prefix}`;
}
