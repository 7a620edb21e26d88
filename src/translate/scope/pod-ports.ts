/** The ports of a pod, as its proxy lists them. */
import type { KnownWorkload } from "#model/workload.ts";

/** Reads `POD_PORTS` of a proxy's metadata: a list, mostly as text. What is none lists nothing. */
export function podPorts(value: unknown): KnownWorkload["ports"] {
  const list = typeof value === "string" ? parsed(value) : value;
  if (!Array.isArray(list)) return {};
  return Object.fromEntries(list.toReversed().flatMap(namedPort));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Ports without a name count too: they tell that the proxy knows its pod. */
function namedPort(port: unknown): [string, number][] {
  if (typeof port !== "object" || port === null) return [];
  const { name = "", containerPort, protocol = "" } = port as Readonly<Record<string, unknown>>;
  if (typeof name !== "string" || typeof containerPort !== "number") return [];
  return [[protocol === "TCP" || protocol === "" ? name : `${name}/${protocol}`, containerPort]];
}
