/** Colours, for terminals alone. */

export interface Style {
  good(text: string): string;
  bad(text: string): string;
  faint(text: string): string;
  /** In one of several colours, the same for the same number. */
  numbered(number: number, text: string): string;
}

const code = (number: number) => (text: string) => `\u001b[${number}m${text}\u001b[0m`;
const plain = (text: string) => text;

/** Easily told apart, on dark and on light ground. */
const SEVERAL = [36, 33, 35, 32, 34, 31].map(code);
const COLOURED: Style = {
  good: code(32),
  bad: code(31),
  faint: code(2),
  numbered: (number, text) => (SEVERAL[number % SEVERAL.length] ?? plain)(text),
};
const PLAIN: Style = { good: plain, bad: plain, faint: plain, numbered: (_, text) => text };

/** Colours when the output is a terminal and the person did not turn them off (NO_COLOR, TERM=dumb). */
export function styleFor(
  output: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Style {
  const wanted = output.isTTY === true && (env.NO_COLOR ?? "") === "" && env.TERM !== "dumb";
  return wanted ? COLOURED : PLAIN;
}
