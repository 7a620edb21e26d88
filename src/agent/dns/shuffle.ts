/** Gives numbers from 0 to 65535. */
export type Random16 = () => number;

export const random16: Random16 = () => Math.floor(Math.random() * 65_536);

/**
 * A shuffled copy, so that clients that take the first address spread over all of them. Two are swapped or not; more are
 * swapped in pairs, one to four times as often as there are.
 */
export function shuffled<T>(items: readonly T[], random: Random16): readonly T[] {
  if (items.length < 2) return items;
  if (items.length === 2) return random() % 2 === 0 ? items.toReversed() : items;
  const result = [...items];
  const size = result.length;
  for (let swaps = 0; swaps < size * ((random() % 4) + 1); swaps++) {
    const from = random() % size;
    const other = random() % size;
    swap(result, from, other === from ? (other + 1) % size : other);
  }
  return result;
}

function swap<T>(items: T[], a: number, b: number): void {
  const [first, second] = [items[a], items[b]];
  if (first === undefined || second === undefined) return;
  items[a] = second;
  items[b] = first;
}
