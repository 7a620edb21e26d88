/** Sprig's functions on dates, but for those that read the clock: `now`, `ago` and dates of what is no date. */
import { formatDuration, parseDuration } from "@mizzen/go-text/duration";
import { textArgument as text } from "../functions.ts";
import { formatGoTime, isZone, parseGoTime } from "../go-time.ts";
import { CallError } from "../template-error.ts";
import { type Callable, Struct, typeName, type Value } from "../value.ts";

const HTML_LAYOUT = "2006-01-02";
const STRING_LAYOUT = "2006-01-02 15:04:05.999999999 -0700 MST";
const ZERO_TIME_MS = -62_135_596_800_000;

/** A time.Time. */
class Time extends Struct {
  readonly epochMs: number;
  readonly zone: string;

  constructor(epochMs: number, zone = "Local") {
    const at = (layout: string) => formatGoTime(epochMs, layout, zone);
    super(
      "time.Time",
      {
        Unix: () => BigInt(Math.floor(epochMs / 1000)),
        Format: (layout) => at(text(layout)),
        Year: () => BigInt(at("2006")),
        String: () => at(STRING_LAYOUT),
        IsZero: () => epochMs === ZERO_TIME_MS,
      },
      { text: at(STRING_LAYOUT), json: at("2006-01-02T15:04:05.999999999Z07:00") },
    );
    this.epochMs = epochMs;
    this.zone = zone;
  }
}

const modified = (change: Value, time: Value) => later(timeOf(time), parseDuration(text(change)) ?? 0);
const mustModified = (change: Value, time: Value) => {
  const by = parseDuration(text(change));
  if (by === undefined) throw new CallError(`time: invalid duration "${text(change)}"`);
  return later(timeOf(time), by);
};
const inZone = (layout: Value, time: Value, zone: Value) =>
  formatGoTime(momentOf(time), text(layout), knownZone(text(zone)));

export const DATE_FUNCTIONS: Readonly<Record<string, Callable>> = {
  date: (layout, time) => formatGoTime(momentOf(time), text(layout), "Local"),
  dateInZone: inZone,
  date_in_zone: inZone,
  htmlDate: (time) => formatGoTime(momentOf(time), HTML_LAYOUT, "Local"),
  htmlDateInZone: (time, zone) => inZone(HTML_LAYOUT, time, zone),
  dateModify: modified,
  date_modify: modified,
  mustDateModify: mustModified,
  must_date_modify: mustModified,
  toDate: (layout, value) => {
    const moment = parseGoTime(text(layout), text(value), "Local");
    return moment === undefined ? new Time(ZERO_TIME_MS, "UTC") : new Time(moment.epochMs, moment.zone);
  },
  mustToDate: (layout, value) => {
    const moment = parseGoTime(text(layout), text(value), "Local");
    if (moment === undefined) throw new CallError(`parsing time "${text(value)}" as "${text(layout)}": cannot parse`);
    return new Time(moment.epochMs, moment.zone);
  },
  unixEpoch: (time) => String(Math.floor(timeOf(time).epochMs / 1000)),
  duration: (seconds) => formatDuration(1000 * secondsOf(seconds)),
  durationRound: (value) => roundedDuration(lengthOf(value)),
};

function later({ epochMs, zone }: Time, by: number): Time {
  return new Time(epochMs + by, zone);
}

function timeOf(value: Value): Time {
  if (value instanceof Time) return value;
  throw new CallError(`wrong type for value; expected time.Time; got ${typeName(value)}`);
}

/** A time, or seconds since 1970. Sprig takes anything else for the present, which no template here can see. */
function momentOf(value: Value): number {
  return typeof value === "bigint" ? 1000 * Number(value) : timeOf(value).epochMs;
}

function knownZone(zone: string): string {
  return isZone(zone) ? zone : "UTC";
}

/** As of an int64; for other whole numbers Sprig gives 0, but templates cannot tell them apart here. */
function secondsOf(value: Value): number {
  if (typeof value === "bigint") return Number(value);
  return typeof value === "string" && /^[+-]?\d+$/.test(value) ? Number(value) : 0;
}

function lengthOf(value: Value): number {
  if (typeof value === "string") return parseDuration(value) ?? 0;
  return typeof value === "bigint" ? Number(value) / 1e6 : 0;
}

const UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ["y", 365 * 86_400_000],
  ["mo", 30 * 86_400_000],
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
];

/** In the largest unit of which there is more than one. */
function roundedDuration(ms: number): string {
  const size = Math.abs(ms);
  const [unit = "s", length = 1_000] = UNITS.find(([, unitMs]) => size > unitMs) ?? [];
  return size > 1_000 ? `${Math.floor(size / length)}${unit}` : "0s";
}
