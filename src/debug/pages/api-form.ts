/** Fields that hold a time span in milliseconds, where the API has a text with a unit. */
const DURATIONS = new Set([
  "backoff",
  "baseEjectionTime",
  "connectTimeout",
  "dnsRefreshRate",
  "drainDuration",
  "duration",
  "exponentialDelay",
  "fixedDelay",
  "idleTimeout",
  "interval",
  "maxAge",
  "maxConnectionDuration",
  "perTryTimeout",
  "protocolDetectionTimeout",
  "terminationDrainDuration",
  "time",
  "timeout",
  "ttl",
  "warmupDurationSecs",
]);

/** A parsed part of the configuration as the API writes it in JSON. */
export function apiForm(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(apiForm);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => {
      const isDuration = typeof field === "number" && DURATIONS.has(name);
      return [name, isDuration ? durationText(field) : apiForm(field)];
    }),
  );
}

/** Seconds with as many digits, in groups of three, as they need: so JSON of protobuf has them. */
function durationText(ms: number): string {
  const nanos = Math.round(ms * 1e6);
  const digits = [0, 3, 6].find((count) => nanos % 10 ** (9 - count) === 0) ?? 9;
  return `${(nanos / 1e9).toFixed(digits)}s`;
}
