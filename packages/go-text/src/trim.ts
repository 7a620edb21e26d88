/** Texts without certain letters at an end, in one pass: a regular expression such as `/x+$/` takes quadratic time. */

/** Without any of the letters at its start. */
export function withoutLeading(text: string, letters: string): string {
  let start = 0;
  while (start < text.length && letters.includes(text.charAt(start))) start++;
  return text.slice(start);
}

/** Without any of the letters at its end. */
export function withoutTrailing(text: string, letters: string): string {
  let end = text.length;
  while (end > 0 && letters.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

/** Without any of the letters at either end. */
export function withoutEnds(text: string, letters: string): string {
  return withoutLeading(withoutTrailing(text, letters), letters);
}
