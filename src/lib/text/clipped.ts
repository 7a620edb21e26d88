/** The text, cut where it is longer than a reader of logs and messages would want. */
export function clipped(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}...` : text;
}
