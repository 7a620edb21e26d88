/** Tables as kubectl prints them: columns wide enough for their longest cell, three spaces between. */

const GAP = "   ";
// biome-ignore lint/suspicious/noControlCharactersInRegex: colour codes begin with one
const COLOUR_CODES = /\u001b\[\d+m/g;

/** The lines of a table; the first row is its head. Cells may hold colour codes. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, i) => Math.max(...rows.map((row) => widthOf(row[i] ?? ""))));
  return rows
    .map((row) => row.map((cell, i) => cell + " ".repeat((widths[i] ?? 0) - widthOf(cell))).join(GAP))
    .map((line) => `${line.trimEnd()}\n`)
    .join("");
}

function widthOf(cell: string): number {
  return [...cell.replace(COLOUR_CODES, "")].length;
}
