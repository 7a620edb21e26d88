/** Sprig's functions on semantic versions, with the constraints of Masterminds/semver: `>=1.2, <2 || ~3.1`, `^1.2.x`, `1 - 2`. */
import { textArgument as text } from "../functions.ts";
import { CallError } from "../template-error.ts";
import { type Callable, Struct } from "../value.ts";

interface Version {
  readonly numbers: readonly [major: number, minor: number, patch: number];
  readonly prerelease: string;
  readonly metadata: string;
  readonly original: string;
}

/** A part of a constraint: what is `undefined` in it was left open. */
interface Bound {
  readonly operator: string;
  readonly version: Version;
  readonly minorOpen: boolean;
  readonly patchOpen: boolean;
  readonly allOpen: boolean;
}

export const VERSION_FUNCTIONS: Readonly<Record<string, Callable>> = {
  semver: (version) => versionStruct(parsedVersion(text(version))),
  semverCompare: (constraint, version) => {
    const alternatives = parsedConstraint(text(constraint));
    const tried = parsedVersion(text(version));
    return alternatives.some((bounds) => bounds.every((bound) => holds(bound, tried)));
  },
};

const IDENTIFIERS = "[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*";
const VERSION = new RegExp(`^v?(\\d+)(?:\\.(\\d+))?(?:\\.(\\d+))?(?:-(${IDENTIFIERS}))?(?:\\+(${IDENTIFIERS}))?$`);
const OPEN = "[xX*]|\\d+";
const BOUND = new RegExp(
  `^(=|!=|>=?|<=?|=>|=<|~>?|\\^)?\\s*v?(${OPEN})(?:\\.(${OPEN}))?(?:\\.(${OPEN}))?(?:-(${IDENTIFIERS}))?(?:\\+(${IDENTIFIERS}))?$`,
);
/** No version and no constraint is longer. */
const LONGEST = 1_000;
const BOUND_BEGIN = /\s*,\s*|\s+(?=[=!<>~^v\dxX*])/;

function parsedVersion(source: string): Version {
  const match = source.length > LONGEST ? null : VERSION.exec(source);
  if (match === null) throw new CallError("invalid semantic version");
  const [, major, minor = "0", patch = "0", prerelease = "", metadata = ""] = match;
  return { numbers: [Number(major), Number(minor), Number(patch)], prerelease, metadata, original: source };
}

function versionStruct({ numbers, prerelease, metadata, original }: Version): Struct {
  const [major, minor, patch] = numbers;
  const shown = `${numbers.join(".")}${prerelease === "" ? "" : `-${prerelease}`}${metadata === "" ? "" : `+${metadata}`}`;
  return new Struct(
    "*semver.Version",
    {
      Major: () => BigInt(major),
      Minor: () => BigInt(minor),
      Patch: () => BigInt(patch),
      Prerelease: () => prerelease,
      Metadata: () => metadata,
      Original: () => original,
      String: () => shown,
    },
    { text: shown, json: shown },
  );
}

function parsedConstraint(source: string): readonly (readonly Bound[])[] {
  if (source.length > LONGEST) throw new CallError("invalid semantic version constraint");
  return source.split("||").map((part) =>
    part
      .trim()
      .replace(new RegExp(`(v?(?:${OPEN})[^\\s,]*)\\s+-\\s+(v?(?:${OPEN})[^\\s,]*)`, "g"), ">=$1,<=$2")
      .replace(/([=!<>~^])\s+/g, "$1")
      .split(BOUND_BEGIN)
      .map((bound) => parsedBound(bound, source)),
  );
}

function parsedBound(source: string, constraint: string): Bound {
  const match = BOUND.exec(source);
  if (match === null) throw new CallError(`improper constraint: ${constraint}`);
  const [, operator = "", major = "", minor, patch, prerelease = ""] = match;
  const isOpen = (part: string | undefined) => part === undefined || /^[xX*]$/.test(part);
  const number = (part: string | undefined) => (isOpen(part) ? 0 : Number(part));
  const minorOpen = isOpen(minor) || isOpen(major);
  return {
    operator: { "=>": ">=", "=<": "<=", "~>": "~" }[operator] ?? operator,
    version: {
      numbers: [number(major), minorOpen ? 0 : number(minor), minorOpen ? 0 : number(patch)],
      prerelease,
      metadata: "",
      original: source,
    },
    allOpen: isOpen(major),
    minorOpen,
    patchOpen: minorOpen || isOpen(patch),
  };
}

/** A version with a prerelease satisfies only bounds that have one. */
function holds(bound: Bound, tried: Version): boolean {
  const { operator, version, allOpen } = bound;
  if (tried.prerelease !== "" && version.prerelease === "" && operator !== "!=") return false;
  const order = compared(tried, version);
  if (allOpen) return !["!=", ">", "<"].includes(operator);
  switch (operator) {
    case "!=":
      return !withinOpen(bound, tried);
    case ">":
      return order > 0 && !(hasOpen(bound) && withinOpen(bound, tried));
    case "<":
      return order < 0;
    case ">=":
      return order >= 0;
    case "<=":
      return order <= 0 || (hasOpen(bound) && withinOpen(bound, tried));
    case "~":
      return order >= 0 && sameFirst(tried, version, bound.minorOpen ? 1 : 2);
    case "^":
      return order >= 0 && sameFirst(tried, version, caretLength(bound));
    default:
      return withinOpen(bound, tried);
  }
}

function hasOpen({ minorOpen, patchOpen }: Bound): boolean {
  return minorOpen || patchOpen;
}

/** What a bound means that leaves parts open: all versions that begin so. */
function withinOpen({ version, minorOpen, patchOpen }: Bound, tried: Version): boolean {
  if (minorOpen) return sameFirst(tried, version, 1);
  return patchOpen ? sameFirst(tried, version, 2) : compared(tried, version) === 0;
}

/** Up to the first number that is not 0. */
function caretLength({ version, minorOpen, patchOpen }: Bound): number {
  const [major, minor] = version.numbers;
  if (major > 0 || minorOpen) return 1;
  return minor > 0 || patchOpen ? 2 : 3;
}

function sameFirst(a: Version, b: Version, length: number): boolean {
  return a.numbers.slice(0, length).every((number, index) => number === b.numbers[index]);
}

function compared(a: Version, b: Version): number {
  for (const [index, number] of a.numbers.entries()) {
    const other = b.numbers[index] ?? 0;
    if (number !== other) return number - other;
  }
  if (a.prerelease === b.prerelease) return 0;
  if (a.prerelease === "" || b.prerelease === "") return a.prerelease === "" ? 1 : -1;
  const [partsA, partsB] = [a.prerelease.split("."), b.prerelease.split(".")];
  for (const [index, part] of partsA.entries()) {
    const other = partsB[index];
    if (other === undefined) return 1;
    if (part !== other) return comparedParts(part, other);
  }
  return -1;
}

/** Numbers before words. */
function comparedParts(a: string, b: string): number {
  const [isNumberA, isNumberB] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (isNumberA && isNumberB) return Number(a) - Number(b);
  if (isNumberA !== isNumberB) return isNumberA ? -1 : 1;
  return a < b ? -1 : 1;
}
