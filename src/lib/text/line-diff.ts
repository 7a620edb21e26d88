/** Differences of two texts line by line, as `diff -u` writes them. */

interface Line {
  readonly sign: " " | "-" | "+";
  readonly text: string;
}

/** Beyond this many differing lines, those of one text are given as a whole and then those of the other. */
const MAX_STEPS = 1_000;

/** The hunks of a unified diff, without the two lines of file names; empty for equal texts. Changes have `context` lines around them. */
export function unifiedHunks(before: readonly string[], after: readonly string[], context = 3): string {
  const lines = diffLines(before, after);
  const changed = lines.flatMap(({ sign }, i) => (sign === " " ? [] : [i]));
  const hunks: { start: number; end: number }[] = [];
  for (const i of changed) {
    const last = hunks.at(-1);
    const end = Math.min(lines.length, i + context + 1);
    if (last !== undefined && i - context <= last.end) last.end = end;
    else hunks.push({ start: Math.max(0, i - context), end });
  }
  return hunks.map((hunk) => hunkText(lines, hunk)).join("");
}

function hunkText(lines: readonly Line[], { start, end }: { readonly start: number; readonly end: number }): string {
  const own = lines.slice(start, end);
  const count = (part: readonly Line[], sign: Line["sign"]) =>
    part.filter((line) => line.sign === " " || line.sign === sign).length;
  const range = (sign: "-" | "+") => {
    const size = count(own, sign);
    const first = count(lines.slice(0, start), sign) + (size === 0 ? 0 : 1);
    return `${sign}${first}${size === 1 ? "" : `,${size}`}`;
  };
  return [`@@ ${range("-")} ${range("+")} @@`, ...own.map(({ sign, text }) => sign + text), ""].join("\n");
}

function diffLines(before: readonly string[], after: readonly string[]): readonly Line[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (
    tail < before.length - head &&
    tail < after.length - head &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  )
    tail++;
  return [
    ...before.slice(0, head).map((text) => ({ sign: " ", text }) as const),
    ...middle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...before.slice(before.length - tail).map((text) => ({ sign: " ", text }) as const),
  ];
}

/** The shortest way from one list to the other, by Myers' greedy search: step `d` knows how far `d` changes lead. */
function middle(before: readonly string[], after: readonly string[]): readonly Line[] {
  const trace: Map<number, number>[] = [];
  const furthest = new Map<number, number>([[1, 0]]);
  for (let d = 0; d <= Math.min(before.length + after.length, MAX_STEPS); d++) {
    trace.push(new Map(furthest));
    for (let k = -d; k <= d; k += 2) {
      let x = isDown(furthest, k, d) ? (furthest.get(k + 1) ?? 0) : (furthest.get(k - 1) ?? 0) + 1;
      while (x < before.length && x - k < after.length && before[x] === after[x - k]) x++;
      furthest.set(k, x);
      if (x >= before.length && x - k >= after.length) return wayBack(trace, before, after);
    }
  }
  return [
    ...before.map((text) => ({ sign: "-", text }) as const),
    ...after.map((text) => ({ sign: "+", text }) as const),
  ];
}

/** Whether the best way to diagonal `k` adds a line, rather than removes one. */
function isDown(furthest: ReadonlyMap<number, number>, k: number, d: number): boolean {
  return k === -d || (k !== d && (furthest.get(k - 1) ?? 0) < (furthest.get(k + 1) ?? 0));
}

function wayBack(
  trace: readonly ReadonlyMap<number, number>[],
  before: readonly string[],
  after: readonly string[],
): readonly Line[] {
  const lines: Line[] = [];
  let x = before.length;
  let y = after.length;
  for (let d = trace.length - 1; d >= 0; d--) {
    const furthest = trace[d] ?? new Map<number, number>();
    const k = x - y;
    const from = isDown(furthest, k, d) ? k + 1 : k - 1;
    const fromX = furthest.get(from) ?? 0;
    const fromY = fromX - from;
    while (x > fromX && y > fromY && x > 0 && y > 0) {
      x--;
      y--;
      lines.push({ sign: " ", text: before[x] ?? "" });
    }
    if (d === 0) break;
    if (x === fromX) lines.push({ sign: "+", text: after[fromY] ?? "" });
    else lines.push({ sign: "-", text: before[fromX] ?? "" });
    x = fromX;
    y = fromY;
  }
  return lines.reverse();
}
