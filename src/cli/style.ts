/** Colours, for terminals alone. */

export interface Style {
  good(text: string): string;
  bad(text: string): string;
  faint(text: string): string;
}

const code = (number: number) => (text: string) => `\u001b[${number}m${text}\u001b[0m`;
const plain = (text: string) => text;

const COLOURED: Style = { good: code(32), bad: code(31), faint: code(2) };
const PLAIN: Style = { good: plain, bad: plain, faint: plain };

/** Colours when the output is a terminal and the person did not turn them off (NO_COLOR, TERM=dumb). */
export function styleFor(
  output: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Style {
  const wanted = output.isTTY === true && (env.NO_COLOR ?? "") === "" && env.TERM !== "dumb";
  return wanted ? COLOURED : PLAIN;
}
