/** One measured thing, and what it is to be. */
export interface Figure {
  readonly what: string;
  readonly measured: string;
  /** What somebody else needed for the same in the same run; undefined where nobody was measured. */
  readonly theirs?: string | undefined;
  readonly aim: string;
  /** Undefined where there is no aim. */
  readonly reached: boolean | undefined;
}

export interface FigureInput {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  readonly digits?: number;
  /** At most; undefined where there is none. */
  readonly most?: number | undefined;
  /** At least; undefined where there is none. */
  readonly least?: number | undefined;
  readonly theirs?: number | undefined;
}

/** A figure that is better when it is smaller, or larger where it has a least value. */
export function figure({ what, value, unit, digits = 1, most, least, theirs }: FigureInput): Figure {
  const text = (number: number) => (Number.isNaN(number) ? "-" : `${number.toFixed(digits)} ${unit}`);
  const hasAim = (most !== undefined || least !== undefined) && !Number.isNaN(value);
  return {
    what,
    measured: text(value),
    theirs: theirs === undefined ? undefined : text(theirs),
    aim: most !== undefined ? `at most ${text(most)}` : least !== undefined ? `at least ${text(least)}` : "",
    reached: hasAim ? value <= (most ?? Number.POSITIVE_INFINITY) && value >= (least ?? 0) : undefined,
  };
}

interface Column {
  readonly title: string;
  readonly cell: (figure: Figure) => string;
  readonly right?: boolean;
}

const COLUMNS: readonly Column[] = [
  { title: "", cell: ({ what }) => what },
  { title: "measured", cell: ({ measured }) => measured, right: true },
  { title: "Istio's", cell: ({ theirs = "" }) => theirs, right: true },
  { title: "aim", cell: ({ aim }) => aim },
  { title: "reached", cell: ({ reached }) => (reached === undefined ? "" : reached ? "yes" : "NO") },
];

/** Figures under each other, with the aim beside each and a mark where it is missed; Istio's where one was measured. */
export function aimsTable(figures: readonly Figure[]): string {
  const compared = figures.some(({ theirs }) => theirs !== undefined);
  const columns = COLUMNS.filter(({ title }) => compared || title !== "Istio's").map(({ title, cell, right }) => {
    const cells = [title, ...figures.map(cell)];
    const width = Math.max(...cells.map((text) => text.length));
    return cells.map((text) => (right ? text.padStart(width) : text.padEnd(width)));
  });
  return [undefined, ...figures]
    .map((_, line) =>
      columns
        .map((cells) => cells[line] ?? "")
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
