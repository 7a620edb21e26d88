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
      return [name, isDuration ? `${field / 1000}s` : apiForm(field)];
    }),
  );
}
