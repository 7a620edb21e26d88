/** Sprig's functions on regular expressions, which are RE2: whatever the expression, it takes linear time. */
import { RE2JS } from "re2js";
import { textArgument as text, wholeArgument as whole } from "../functions.ts";
import { CallError } from "../template-error.ts";
import type { Callable } from "../value.ts";

const FUNCTIONS: Readonly<Record<string, Callable>> = {
  regexMatch: (regex, value) => isMatch(text(regex), text(value)),
  regexFind: (regex, value) => matches(text(regex), text(value), 1)[0] ?? "",
  regexFindAll: (regex, value, count) => matches(text(regex), text(value), whole(count)),
  regexReplaceAll: (regex, value, to) => replaced(text(regex), text(value), (groups) => expanded(text(to), groups)),
  regexReplaceAllLiteral: (regex, value, to) => replaced(text(regex), text(value), () => text(to)),
  regexSplit: (regex, value, count) => split(text(regex), text(value), whole(count)),
};

/** With `must`, Sprig's functions refuse what they otherwise panic on, which is the same to a template. */
export const REGEX_FUNCTIONS: Readonly<Record<string, Callable>> = {
  ...FUNCTIONS,
  ...Object.fromEntries(Object.entries(FUNCTIONS).map(([name, call]) => [name.replace(/^r/, "mustR"), call])),
  regexMatch: (regex, value) => isExpression(text(regex)) && isMatch(text(regex), text(value)),
  regexQuoteMeta: (value) => text(value).replace(/[\\.+*?()|[\]{}^$]/g, "\\$&"),
};

/** Longer ones are data that got into the place of an expression: they would take long to compile. */
const LONGEST = 1_000;

function compiled(regex: string): RE2JS {
  if (regex.length > LONGEST) throw new CallError(`a regular expression of more than ${LONGEST} letters`);
  try {
    return RE2JS.compile(regex);
  } catch (thrown) {
    throw new CallError(thrown instanceof Error ? thrown.message : String(thrown));
  }
}

function isExpression(regex: string): boolean {
  try {
    compiled(regex);
    return true;
  } catch {
    return false; // It matches nothing, as Sprig has it.
  }
}

function isMatch(regex: string, value: string): boolean {
  return compiled(regex).matcher(value).find();
}

interface Found {
  readonly start: number;
  readonly end: number;
  /** The whole match first. */
  readonly groups: Groups;
}

interface Groups {
  readonly byNumber: readonly string[];
  readonly byName: ReadonlyMap<string, string>;
}

/** Without empty ones right behind the one before. */
function* found(regex: string, value: string): Generator<Found> {
  const pattern = compiled(regex);
  const matcher = pattern.matcher(value);
  const names = Object.keys(pattern.namedGroups());
  let before = -1;
  while (matcher.find()) {
    const isEmpty = matcher.start() === matcher.end();
    if (isEmpty && matcher.start() === before) continue;
    before = matcher.end();
    const byNumber = Array.from({ length: matcher.groupCount() + 1 }, (_, index) => matcher.group(index) ?? "");
    const byName = new Map(names.map((name) => [name, matcher.group(name) ?? ""]));
    yield { start: matcher.start(), end: matcher.end(), groups: { byNumber, byName } };
  }
}

/** At most `count` of them; all when it is negative. */
function matches(regex: string, value: string, count: number): readonly string[] {
  const all: string[] = [];
  for (const { groups } of found(regex, value)) {
    if (count >= 0 && all.length >= count) break;
    all.push(groups.byNumber[0] ?? "");
  }
  return all;
}

function replaced(regex: string, value: string, to: (groups: Groups) => string): string {
  let [result, done] = ["", 0];
  for (const { start, end, groups } of found(regex, value)) {
    result += value.slice(done, start) + to(groups);
    done = end;
  }
  return result + value.slice(done);
}

/** Go's Expand: `$1`, `${1}`, `$name`, `${name}`, `$$`; a name is as long as it can be. */
function expanded(template: string, { byNumber, byName }: Groups): string {
  return template.replace(/\$(?:\$|(\w+)|\{(\w+)\})/g, (all, bare?: string, braced?: string) => {
    const name = bare ?? braced;
    if (name === undefined) return all.slice(1);
    return (/^\d+$/.test(name) ? byNumber[Number(name)] : byName.get(name)) ?? "";
  });
}

/** Go's Split: an empty match at an end splits nothing off. */
function split(regex: string, value: string, count: number): readonly string[] | null {
  if (count === 0) return null;
  if (regex !== "" && value === "") return [""];
  const parts: string[] = [];
  let begin = 0;
  let last = 0;
  for (const { start, end } of found(regex, value)) {
    if (count > 0 && parts.length === count - 1) break;
    last = start;
    if (end !== 0) parts.push(value.slice(begin, start));
    begin = end;
  }
  if (last !== value.length) parts.push(value.slice(begin));
  return parts;
}
