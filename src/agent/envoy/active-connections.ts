export interface OwnPorts {
  readonly envoyStatusPort: number;
  readonly envoyPrometheusPort: number;
}

/**
 * How many connections of clients Envoy has, from its statistics `downstream_cx_active`; undefined when it has none of
 * them yet. Those to the agent's own listeners, to the admin port and between Envoy's own filters do not count, nor do
 * the numbers per worker thread, which are part of the sum.
 */
export function activeConnections(
  stats: string,
  { envoyStatusPort, envoyPrometheusPort }: OwnPorts,
): number | undefined {
  if (stats.trim() === "") return undefined;
  const own = new Set(
    [`0.0.0.0_${envoyStatusPort}`, `0.0.0.0_${envoyPrometheusPort}`, "admin", "admin.main_thread"].map(
      (name) => `listener.${name}.downstream_cx_active`,
    ),
  );
  let sum = 0;
  for (const line of stats.split("\n")) {
    const [name = "", value = "", ...rest] = line.split(":");
    const isClients =
      rest.length === 0 &&
      name.startsWith("listener.") &&
      !name.startsWith("listener.envoy_internal_") &&
      !name.includes("worker_") &&
      !own.has(name);
    const count = Number.parseInt(value, 10);
    if (isClients && count > 0) sum += count;
  }
  return sum;
}
