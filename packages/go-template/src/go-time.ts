import { withoutTrailing } from "@mizzen/go-text/trim";

/** Times as Go's package `time` writes and reads them: by an example of 2 January 2006, 15:04:05, seven hours west. */

const MONTHS = "January February March April May June July August September October November December".split(" ");
const DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");

/** The parts of a layout that stand for something, longest first. */
const TOKEN =
  /January|Jan|Monday|Mon|MST|2006|002|_2(?!006)|0[1-6]|15|PM|pm|[Z-]07:00:00|[Z-]070000|[Z-]07:00|[Z-]0700|[Z-]07|[.,](?:0+|9+)(?!\d)|[1-5]/g;

/** A moment in a time zone, as its clocks show it. */
interface Clock {
  readonly year: number;
  /** From 1. */
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly millisecond: number;
  /** East of Greenwich. */
  readonly offsetMinutes: number;
  readonly zoneName: string;
}

/** True for zones that are known here; "Local" and "UTC" are. */
export function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", zoneOption(zone));
    return true;
  } catch {
    return false;
  }
}

/** A moment by a layout. */
export function formatGoTime(epochMs: number, layout: string, zone: string): string {
  const clock = clockOf(epochMs, zone);
  return layout.replace(TOKEN, (token) => written(token, clock));
}

/** A moment and how it was written. */
export interface GoTime {
  readonly epochMs: number;
  /** A name, or an offset such as "+02:00". */
  readonly zone: string;
}

/** No layout and no time is longer. */
const LONGEST = 200;

/** The moment that a text names by a layout; times without a zone are of the given one. Undefined when it names none. */
export function parseGoTime(layout: string, text: string, zone: string): GoTime | undefined {
  if (layout.length > LONGEST || text.length > LONGEST) return undefined;
  const tokens: string[] = [];
  let [pattern, done] = ["", 0];
  for (const { 0: token, index } of layout.matchAll(TOKEN)) {
    pattern += escaped(layout.slice(done, index)) + readable(token, layout.slice(index + token.length));
    tokens.push(token);
    done = index + token.length;
  }
  const match = new RegExp(`^${pattern}${escaped(layout.slice(done))}$`).exec(text);
  return match === null ? undefined : momentOf(tokens, match.slice(1), zone);
}

function zoneOption(zone: string): { timeZone?: string } {
  return zone === "Local" ? {} : { timeZone: zone === "" ? "UTC" : zone };
}

function clockOf(epochMs: number, zone: string): Clock {
  const format = new Intl.DateTimeFormat("en-US", {
    ...zoneOption(zone),
    ...{ year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" },
    ...{ hourCycle: "h23", era: "short", timeZoneName: "short" },
  });
  const parts = Object.fromEntries(format.formatToParts(epochMs).map(({ type, value }) => [type, value]));
  const number = (name: string) => Number(parts[name]);
  const [year, month, day] = [parts.era === "BC" ? 1 - number("year") : number("year"), number("month"), number("day")];
  const [hour, minute, second] = [number("hour"), number("minute"), number("second")];
  const millisecond = ((epochMs % 1000) + 1000) % 1000;
  const offsetMinutes = Math.round((utc([year, month, day, hour, minute, second]) + millisecond - epochMs) / 60_000);
  const zoneName = /^[+-]/.test(zone) ? zone.replace(":", "") : (parts.timeZoneName ?? "UTC");
  return { year, month, day, hour, minute, second, millisecond, offsetMinutes, zoneName };
}

function utc([year, month, day, hour, minute, second]: readonly number[]): number {
  const date = new Date(0);
  date.setUTCFullYear(year ?? 0, (month ?? 1) - 1, day ?? 1);
  date.setUTCHours(hour ?? 0, minute ?? 0, second ?? 0, 0);
  return date.getTime();
}

function written(token: string, clock: Clock): string {
  const { year, month, day, hour, minute, second } = clock;
  const two = (value: number) => String(value).padStart(2, "0");
  const twelve = hour % 12 === 0 ? 12 : hour % 12;
  const values: Readonly<Record<string, string>> = {
    ...{ "2006": String(year).padStart(4, "0"), "06": two(year % 100), "01": two(month), "1": String(month) },
    ...{
      Jan: (MONTHS[month - 1] ?? "").slice(0, 3),
      January: MONTHS[month - 1] ?? "",
      "02": two(day),
      "2": String(day),
    },
    ...{
      _2: String(day).padStart(2, " "),
      "002": dayOfYear(clock),
      Mon: weekday(clock).slice(0, 3),
      Monday: weekday(clock),
    },
    ...{ "15": two(hour), "03": two(twelve), "3": String(twelve), "04": two(minute), "4": String(minute) },
    ...{ "05": two(second), "5": String(second), PM: hour < 12 ? "AM" : "PM", pm: hour < 12 ? "am" : "pm" },
    MST: clock.zoneName,
  };
  return values[token] ?? (/^[Z-]/.test(token) ? offsetText(token, clock) : fractionText(token, clock));
}

function weekday({ year, month, day }: Clock): string {
  return DAYS[new Date(utc([year, month, day])).getUTCDay()] ?? "";
}

function dayOfYear({ year, month, day }: Clock): string {
  return String((utc([year, month, day]) - utc([year])) / 86_400_000 + 1).padStart(3, "0");
}

function offsetText(token: string, { offsetMinutes }: Clock): string {
  if (token.startsWith("Z") && offsetMinutes === 0) return "Z";
  const minutes = Math.abs(offsetMinutes);
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, "0"));
  const parts = [hours, ...(token.length > 3 ? [rest] : []), ...(token.length > 6 ? ["00"] : [])];
  return (offsetMinutes < 0 ? "-" : "+") + parts.join(token.includes(":") ? ":" : "");
}

function fractionText(token: string, { millisecond }: Clock): string {
  const digits = String(millisecond)
    .padStart(3, "0")
    .padEnd(9, "0")
    .slice(0, token.length - 1);
  if (token[1] === "0") return token.charAt(0) + digits;
  const short = withoutTrailing(digits, "0");
  return short === "" ? "" : token.charAt(0) + short;
}

function escaped(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$/-]/g, "\\$&");
}

/** What a part of a layout may look like. A fraction may follow the seconds whether or not the layout has one. */
function readable(token: string, rest: string): string {
  if (token === "January" || token === "Jan") return "([A-Za-z]+)";
  if (token === "Monday" || token === "Mon") return "([A-Za-z]+)";
  if (token === "MST") return "([A-Z][A-Za-z]{2,4}|[+-]\\d{2,4})";
  if (/^pm$/i.test(token)) return "([AP]M|[ap]m)";
  if (/^[Z-]/.test(token)) return token.startsWith("Z") ? "(Z|[+-][\\d:]+)" : "([+-][\\d:]+)";
  if (/^[.,]/.test(token)) return token[1] === "0" ? `([.,]\\d{${token.length - 1}})` : "([.,]\\d+)?";
  const digits =
    { "2006": "\\d{4}", "002": "\\d{3}", _2: " ?\\d{1,2}" }[token] ?? (token.length === 2 ? "\\d{2}" : "\\d{1,2}");
  const fraction = /^0?5$/.test(token) && !/^[.,][09]/.test(rest) ? "(?:[.,]\\d+)?" : "";
  return `(${digits}${fraction})`;
}

function momentOf(tokens: readonly string[], values: readonly string[], zone: string): GoTime | undefined {
  const read = new Map(tokens.map((token, index) => [token.replace(/^[Z-]07.*/, "offset"), values[index] ?? ""]));
  const number = (...names: readonly string[]) =>
    names
      .map((name) => read.get(name))
      .find((value) => value !== undefined)
      ?.replace(",", ".");
  const month = monthOf(read) ?? Number(number("01", "1") ?? 1);
  const short = number("06");
  const year = Number(number("2006") ?? (short === undefined ? 0 : Number(short) + (Number(short) < 69 ? 2000 : 1900)));
  const day = Number(number("02", "2", "_2") ?? 1);
  const half = (read.get("PM") ?? read.get("pm"))?.toUpperCase();
  const twelve = Number(number("03", "3") ?? Number.NaN);
  const hour = Number.isNaN(twelve) ? Number(number("15") ?? 0) : (twelve % 12) + (half === "PM" ? 12 : 0);
  const [minute, second] = [Number(number("04", "4") ?? 0), Number(number("05", "5") ?? 0)];
  const fraction = [...read].find(([token]) => /^[.,]/.test(token))?.[1] ?? "";
  const date = [year, month, day, hour, minute, Math.floor(second)];
  const isDate = new Date(utc(date)).getUTCMonth() === month - 1 && hour < 24 && minute < 60 && second < 60;
  if (!isDate || month < 1 || month > 12) return undefined;
  const clock =
    utc(date) + Math.floor(1000 * (second % 1)) + Math.floor(1000 * Number(`0${fraction.replace(",", ".")}`));
  return inWrittenZone(read, clock, zone);
}

function monthOf(read: ReadonlyMap<string, string>): number | undefined {
  const name = read.get("January") ?? read.get("Jan");
  if (name === undefined) return undefined;
  const long = read.has("January");
  return MONTHS.findIndex((month) => (long ? month : month.slice(0, 3)).toLowerCase() === name.toLowerCase()) + 1;
}

function inWrittenZone(read: ReadonlyMap<string, string>, clock: number, zone: string): GoTime {
  const here = (epochMs: number) => clockOf(epochMs, zone).offsetMinutes;
  const written = read.get("offset");
  if (written === "Z" || (written === undefined && read.get("MST") === "UTC")) return { epochMs: clock, zone: "UTC" };
  if (written === undefined) return { epochMs: clock - 60_000 * here(clock - 60_000 * here(clock)), zone };
  const [, sign = "+", hours = "00", minutes = "00"] = /^([+-])(\d{2}):?(\d{2})?/.exec(written) ?? [];
  const offsetMinutes = (sign === "-" ? -1 : 1) * (60 * Number(hours) + Number(minutes));
  const epochMs = clock - 60_000 * offsetMinutes;
  return { epochMs, zone: here(epochMs) === offsetMinutes ? zone : `${sign}${hours}:${minutes}` };
}
