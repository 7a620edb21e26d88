/** The order of keys in YAML that Kubernetes' tools write: as people count, `v2` before `v10`, and signs before letters. */

/** Less than 0 where the first key stands first. */
export function compareKeys(a: string, b: string): number {
  const [left, right] = [[...a], [...b]];
  const at = left.findIndex((letter, i) => letter !== right[i]);
  if (at < 0) return left.length - right.length;
  if (at >= right.length) return 1;
  const [x = "", y = ""] = [left[at], right[at]];
  if (isLetter(x) && isLetter(y)) return x < y ? -1 : 1;
  if (isLetter(x) || isLetter(y)) return isLetter(y) ? -1 : 1;
  return compareNumbers(digitsFrom(left, at), digitsFrom(right, at)) || (x < y ? -1 : 1);
}

/** By value, then the shorter one first. */
function compareNumbers(a: string, b: string): number {
  return Number(a) - Number(b) || a.length - b.length;
}

/** The digits from a place on. Where the number began before it, zeros count: some digit stands for what was before. */
function digitsFrom(letters: readonly string[], at: number): string {
  let start = at;
  while (start > 0 && /\d/.test(letters[start - 1] ?? "")) start--;
  const began = letters.slice(start, at).some((digit) => digit !== "0");
  const digits = /^\d*/.exec(letters.slice(at).join(""))?.[0] ?? "";
  return (began ? "1" : "") + digits;
}

function isLetter(letter: string): boolean {
  return /^\p{L}$/u.test(letter);
}
