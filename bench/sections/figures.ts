/** One measured thing, and what it is to be. */
export interface Figure {
  readonly what: string;
  readonly measured: string;
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
}

/** A figure that is better when it is smaller. */
export function figure({ what, value, unit, digits = 1, most }: FigureInput): Figure {
  const text = (number: number) => `${number.toFixed(digits)} ${unit}`;
  return {
    what,
    measured: Number.isNaN(value) ? "-" : text(value),
    aim: most === undefined ? "" : `at most ${text(most)}`,
    reached: most === undefined || Number.isNaN(value) ? undefined : value <= most,
  };
}

/** Figures under each other, with the aim beside each and a mark where it is missed. */
export function aimsTable(figures: readonly Figure[]): string {
  const rows = figures.map(({ what, measured, aim, reached }) => [
    what,
    measured,
    aim,
    reached === undefined ? "" : reached ? "yes" : "NO",
  ]);
  const lines = [["", "measured", "aim", "reached"], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line.map((text, column) => (column === 1 ? text.padStart(widths[1] ?? 0) : text.padEnd(widths[column] ?? 0))),
    )
    .map((line) => line.join("  ").trimEnd())
    .join("\n");
}
