import { MeshError } from "#lib/mesh-error.ts";

/** Reads the value of a flag as Go's programs do: with a sign, and in the words of theirs when it is no number. */
export function wholeNumber(flag: string): (text: string) => number {
  return (text) => {
    if (/^[+-]?\d+$/.test(text)) return Number(text);
    throw new MeshError("FLAG_INVALID", `invalid argument "${text}" for "${flag}" flag: it must be a whole number`);
  };
}
