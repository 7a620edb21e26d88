/** What the kernel knows of the agent's process, by the names that Prometheus' own libraries have for it. */
import { readdirSync, readFileSync } from "node:fs";

/** A value that is read when it is asked for. */
export interface ProcessMetric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  /** Undefined where the kernel does not tell. */
  readonly read: () => number | undefined;
}

/** `folder` is that of the process under `/proc`. */
export function processMetrics(folder = "/proc/self"): readonly ProcessMetric[] {
  const startedAt = Date.now() / 1000 - process.uptime();
  const text = (file: string) => readOptional(() => readFileSync(`${folder}/${file}`, "utf8")) ?? "";
  const limit = (name: string) => parseLimit(text("limits"), name);
  const octets = (name: string) => parseNetstat(text("net/netstat"), "IpExt", name);
  const gauge = (name: string, help: string, read: ProcessMetric["read"]) =>
    ({ name: `process_${name}`, help, type: "gauge", read }) as const;
  const counter = (name: string, help: string, read: ProcessMetric["read"]) =>
    ({ name: `process_${name}`, help, type: "counter", read }) as const;
  return [
    counter("cpu_seconds_total", "CPU time used.", cpuSeconds),
    gauge("max_fds", "File descriptors that may be open.", () => limit("Max open files")),
    counter("network_receive_bytes_total", "Bytes received in this network namespace.", () => octets("InOctets")),
    counter("network_transmit_bytes_total", "Bytes sent in this network namespace.", () => octets("OutOctets")),
    gauge("open_fds", "File descriptors that are open.", () => readOptional(() => readdirSync(`${folder}/fd`).length)),
    gauge("resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss()),
    gauge("start_time_seconds", "Start of the process, in seconds since 1970.", () => startedAt),
    gauge("virtual_memory_bytes", "Virtual memory.", () => parseVirtualMemory(text("stat"))),
    gauge("virtual_memory_max_bytes", "Virtual memory that may be used.", () => limit("Max address space")),
  ];
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** The soft limit; as with Prometheus' libraries, one that does not exist is the largest number. */
export function parseLimit(limits: string, name: string): number | undefined {
  const soft = limits
    .split("\n")
    .find((line) => line.startsWith(name))
    ?.slice(name.length)
    .trim()
    .split(/\s+/)[0];
  if (soft === "unlimited") return 2 ** 64;
  return soft === undefined || !/^\d+$/.test(soft) ? undefined : Number(soft);
}

/** The file has two lines for each protocol, of names and of values. */
export function parseNetstat(netstat: string, protocol: string, name: string): number | undefined {
  const [names = [], values = []] = netstat
    .split("\n")
    .filter((line) => line.startsWith(`${protocol}:`))
    .map((line) => line.split(" "));
  const at = names.indexOf(name);
  return at < 0 || values[at] === undefined ? undefined : Number(values[at]);
}

/** The 23rd field; the second is the program's name in brackets, with whatever is in it. */
export function parseVirtualMemory(stat: string): number | undefined {
  const field = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[20];
  return field === undefined || !/^\d+$/.test(field) ? undefined : Number(field);
}

function readOptional<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined; // not on this kernel, or not for this user
  }
}
