/**
 * Text that others wrote, with line ends and other control characters escaped: it must not begin a line of its own in a
 * log, nor speak to the terminal that shows it.
 */
export function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
