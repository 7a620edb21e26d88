/** The order of texts by code units: the same everywhere, whatever the language of the machine. */
export function compareText(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
