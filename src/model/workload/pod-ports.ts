/** The ports of a pod, as its proxy lists them. */
import { isRecord } from "#lib/json/is-record.ts";
import type { KnownWorkload } from "./workload.ts";

/** How ports of pods are told apart: a name may be that of one for TCP, and of another as `name/UDP` or `name/SCTP`. */
export function podPortName(name: string, protocol: string | null | undefined): string {
  return protocol && protocol !== "TCP" ? `${name}/${protocol}` : name;
}

/** Reads `POD_PORTS` of a proxy's metadata: JSON in a text. Undefined for what is no list of ports. */
export function parsePodPorts(value: unknown): KnownWorkload["ports"] | undefined {
  if (value === undefined) return {};
  const list = typeof value === "string" ? parsed(value) : undefined;
  if (list === null) return {};
  if (!Array.isArray(list) || !list.every(isPortOrNone)) return undefined;
  return Object.fromEntries(list.toReversed().flatMap(namedPort));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the caller says what it must be
  }
}

interface PodPort {
  readonly name?: string | null;
  readonly containerPort?: number | null;
  readonly protocol?: string | null;
}

function isPortOrNone(value: unknown): value is PodPort | null {
  if (value === null) return true;
  if (!isRecord(value)) return false;
  const { name, containerPort, protocol } = value;
  return (
    typeof (name ?? "") === "string" && Number.isInteger(containerPort ?? 0) && typeof (protocol ?? "") === "string"
  );
}

/** Ports without a name count too: they tell that the proxy knows its pod. */
function namedPort(port: PodPort | null): [string, number][] {
  if (!port?.containerPort) return [];
  const { name, containerPort, protocol } = port;
  return [[podPortName(name ?? "", protocol), containerPort]];
}
