/** Claims of tokens as policies see them. */

/** Claims that are lists by convention, written as one text with spaces. */
const SPACE_DELIMITED = ["permission", "scope"];

/** Claims that are read as lists: those of a rule, and those that are so by convention. */
export function spaceDelimitedClaims(claims: readonly string[] = []): readonly string[] {
  return [...new Set([...claims, ...SPACE_DELIMITED])].sort();
}
