/** Matches of text. */
import { RE2JS } from "re2js";
import { errorText } from "#lib/mesh-error.ts";
import { error, type Problem } from "../../schema/problem.ts";
import type { StringMatch } from "./schema.ts";

const MAX_REGEX = 1024;

/** A match whose prefix or regular expression must not be empty. */
export function* checkStringMatch(match: StringMatch | undefined, at: string): Iterable<Problem> {
  if (match?.prefix === "") yield error(`${at}.prefix`, "must not be empty");
  yield* checkRegexMatch(match, at);
}

/** A match whose prefix may be empty, as that of a path may. */
export function* checkRegexMatch(match: StringMatch | undefined, at: string): Iterable<Problem> {
  if (match?.regex !== undefined) yield* checkRegex(match.regex, `${at}.regex`);
}

/** A regular expression of RE2, which Envoy runs: no look-around, no references back. */
export function* checkRegex(regex: string, at: string): Iterable<Problem> {
  if (regex === "") yield error(at, "must not be empty");
  if (regex.length > MAX_REGEX) yield error(at, `must be at most ${MAX_REGEX} characters long`);
  else {
    try {
      RE2JS.compile(regex);
    } catch (thrown) {
      yield error(at, `must be a regular expression of RE2: ${errorText(thrown)}`);
    }
  }
}
