/** The value below which that part of all lies; 0 of none. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}
