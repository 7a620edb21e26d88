/** Tables as istioctl prints them: each column as wide as its longest cell and the gap; the last one is not filled up. */

/** The lines of a table. */
export function formatGoTable(rows: readonly (readonly string[])[], gap: number): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from(
    { length: columns },
    (_, i) => gap + Math.max(...rows.map((row) => [...(row[i] ?? "")].length)),
  );
  const line = (row: readonly string[]) =>
    row.map((cell, i) =>
      i === row.length - 1 ? cell : cell.padEnd((widths[i] ?? 0) + cell.length - [...cell].length),
    );
  return rows.map((row) => `${line(row).join("")}\n`).join("");
}
