import { MeshError } from "#lib/mesh-error.ts";

/** Go's spellings, with underscores between digits: `15`, `0xf`, `0b1111`, `0o17` and also `017`. */
const DECIMAL = /^(?:0|[1-9](?:_?\d)*)$/;
const PREFIXED = /^0(?:x(?:_?[\da-f])+|b(?:_?[01])+|o?(?:_?[0-7])+)$/i;
const LARGEST = 2n ** 63n - 1n;
/** What 32 bits hold. */
export const LARGEST_INT32 = 2 ** 31 - 1;

/**
 * Reads the value of a flag as Go's programs do: with a sign, and in the words of theirs when it is no number. One that is
 * further from 0 than `largest` is out of range.
 */
export function wholeNumber(flag: string, largest: number | bigint = LARGEST): (text: string) => number {
  return (text) => {
    const size = sizeOf(text.replace(/^[+-]/, ""));
    if (size !== undefined && size <= largest) return Number(text.startsWith("-") ? -size : size);
    const fault = size === undefined ? "it must be a whole number" : "value out of range";
    throw new MeshError("FLAG_INVALID", `invalid argument "${text}" for "${flag}" flag: ${fault}`);
  };
}

function sizeOf(digits: string): bigint | undefined {
  if (DECIMAL.test(digits)) return BigInt(digits.replaceAll("_", ""));
  if (!PREFIXED.test(digits)) return undefined;
  return BigInt(
    digits
      .toLowerCase()
      .replaceAll("_", "")
      .replace(/^0(?=\d)/, "0o"),
  );
}
