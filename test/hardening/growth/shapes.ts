/** Texts of any size that are expensive for readers with hidden loops or recursion. */

/** Shapes of text by name; each gives a text of about `size` letters. */
export const TEXTS: Readonly<Record<string, (size: number) => string>> = {
  "one long word": (size) => "a".repeat(size),
  "a long word with a surprise": (size) => `${"a".repeat(size)}!`,
  digits: (size) => "1".repeat(size),
  slashes: (size) => "/".repeat(size),
  "encoded slashes": (size) => "%2f".repeat(size / 3),
  dots: (size) => "a.".repeat(size / 2),
  spaces: (size) => `x${" ".repeat(size)}x`,
  commas: (size) => "a,".repeat(size / 2),
  pairs: (size) => "a=b&".repeat(size / 4),
};

/** Shapes of JSON, of about `size` bytes. */
export const JSONS: Readonly<Record<string, (size: number) => string>> = {
  "nested lists": (size) => "[".repeat(size / 2) + "]".repeat(size / 2),
  "nested objects": (size) => `${'{"a":'.repeat(size / 6)}1${"}".repeat(size / 6)}`,
  "unclosed lists": (size) => "[".repeat(size),
  "many fields": (size) =>
    `{${Array.from({ length: size / 16 }, (_, i) => `"f${String(i).padStart(9, "0")}":1`).join()}}`,
  "one long text": (size) => `"${"a".repeat(size)}"`,
  "an unclosed text": (size) => `"${"a".repeat(size)}`,
  escapes: (size) => `"${"\\\\".repeat(size / 2)}"`,
  "unclosed escapes": (size) => `"${'\\"'.repeat(size / 2)}`,
  quotes: (size) => '"'.repeat(size),
  "many texts": (size) => `[${Array.from({ length: size / 5 }, () => '"a"').join()}]`,
  numbers: (size) => `[${"1,".repeat(size / 2)}1]`,
  "one long number": (size) => "1".repeat(size),
  spaces: (size) => `[${" ".repeat(size)}]`,
};
