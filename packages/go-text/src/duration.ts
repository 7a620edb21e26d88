/** Durations as Go writes them, such as `1h30m` or `1.5s`: the form in which users of the API give them. */

/** A length of time in milliseconds; fractions reach down to nanoseconds. */
export type Millis = number;

const UNITS: Readonly<Record<string, Millis>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};
const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/y; // escaped: one letter beyond Latin-1 doubles the size of a bundle in memory
/** Go counts nanoseconds in 64 bits. */
const LONGEST: Millis = 2 ** 63 / 1e6;

/** Reads a Go duration; undefined when the text is none. A bare `0` is allowed, other numbers need a unit. */
export function parseDuration(text: string): Millis | undefined {
  const sign = text.startsWith("-") ? -1 : 1;
  const start = /^[-+]/.test(text) ? 1 : 0;
  if (text.slice(start) === "0") return 0;
  let total = 0;
  PART.lastIndex = start;
  while (PART.lastIndex < text.length) {
    const match = PART.exec(text);
    if (match === null) return undefined;
    total += Number(match[1]) * (UNITS[match[2] ?? ""] ?? 0);
  }
  if (text.length === start || total >= LONGEST) return undefined;
  return total === 0 ? 0 : sign * total;
}

/** Writes a duration as Go prints it: `1h0m0s`, `1.5s`, `250ms`, `0s`. */
export function formatDuration(duration: Millis): string {
  const sign = duration < 0 ? "-" : "";
  const nanos = Math.round(Math.abs(duration) * 1e6);
  if (nanos === 0) return "0s";
  if (nanos < 1e3) return `${sign}${nanos}ns`;
  if (nanos < 1e6) return `${sign}${nanos / 1e3}µs`;
  if (nanos < 1e9) return `${sign}${nanos / 1e6}ms`;
  const seconds = Math.floor(nanos / 1e9);
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  const rest = `${(nanos % 60e9) / 1e9}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${rest}`;
  return minutes > 0 ? `${sign}${minutes}m${rest}` : `${sign}${rest}`;
}
