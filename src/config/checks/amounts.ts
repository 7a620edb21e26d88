/** Durations, percentages and weights. */
import { formatDuration, type Millis } from "@mizzen/go-text/duration";
import { error, type Problem } from "../schema/problem.ts";

/** A time of at least a millisecond, in whole milliseconds, if it is set. */
export function* checkDuration(duration: Millis | undefined, at: string): Iterable<Problem> {
  if (duration === undefined) return;
  if (duration < 1 || duration % 1 !== 0) {
    yield error(at, `must be at least 1ms and a whole number of milliseconds, not ${formatDuration(duration)}`);
  }
}

/** A percentage that Envoy can express: none, or at least a ten-thousandth. */
export function* checkPercentage(
  percent: { readonly value?: number | undefined } | undefined,
  at: string,
): Iterable<Problem> {
  const value = percent?.value ?? 0;
  if (value < 0 || value > 100 || (value > 0 && value < 0.0001)) {
    yield error(`${at}.value`, `must be 0, or from 0.0001 to 100, not ${value}`);
  }
}

/** A number from 0 to 100, if it is set. */
export function* checkPercent(value: number | undefined, at: string): Iterable<Problem> {
  if (value !== undefined && !(value >= 0 && value <= 100)) yield error(at, `must be from 0 to 100, not ${value}`);
}

/** A number that must not be negative, if it is set. */
export function* checkNotNegative(value: number | undefined, at: string): Iterable<Problem> {
  if (value !== undefined && value < 0) yield error(at, `must not be negative, not ${value}`);
}
