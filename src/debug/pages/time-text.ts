/** A moment as the API writes it: in whole seconds, where that is exact. */
export function timeText(at: number): string {
  return new Date(at).toISOString().replace(".000Z", "Z");
}
