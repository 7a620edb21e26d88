/** Suggestions for misspelled names. */

/** Nobody misspells a longer name by a few letters only. */
const MAX_LENGTH = 64;

/** The known name that differs least from the given one, by at most a third of its letters; undefined when none is near. */
export function nearestName(given: string, known: Iterable<string>): string | undefined {
  if (given.length > MAX_LENGTH) return undefined;
  let nearest: string | undefined;
  let least = Math.floor(given.length / 3) + 1;
  for (const name of known) {
    if (Math.abs(name.length - given.length) >= least) continue;
    const distance = editDistance(given.toLowerCase(), name.toLowerCase());
    if (distance < least) [nearest, least] = [name, distance];
  }
  return nearest;
}

/** How many letters have to be changed, added, removed or swapped with their neighbour. */
function editDistance(a: string, b: string): number {
  let [beforeLast, last]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      const isSwapped = !same && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const changed = (last[j - 1] ?? 0) + (same ? 0 : 1);
      const swapped = isSwapped ? (beforeLast[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      row[j] = Math.min(changed, swapped, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length] ?? 0;
}
