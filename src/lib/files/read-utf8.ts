import { isUtf8 } from "node:buffer";
import { readFileSync } from "node:fs";

const LINE_END = 0x0a;

/** The text of a file. Throws where it is no UTF-8: letters put in the place of what is wrong are values that nobody gave. */
export function readUtf8(path: string): string {
  const bytes = readFileSync(path);
  if (isUtf8(bytes)) return bytes.toString();
  throw new Error(`line ${wrongLine(bytes)} is not UTF-8`);
}

/** Counted from 1. No letter of several bytes holds a line end, so each line can be looked at by itself. */
function wrongLine(bytes: Buffer): number {
  for (let line = 1, start = 0; ; line++) {
    const end = bytes.indexOf(LINE_END, start);
    if (end < 0 || !isUtf8(bytes.subarray(start, end))) return line;
    start = end + 1;
  }
}
