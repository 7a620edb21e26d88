/** `readinessProbe` of ProxyConfig: how an agent outside of Kubernetes finds out whether its application is ready. */
import type { ProxyConfig, ReadinessProbeConfig } from "#config/proxy-config/proxy-config.ts";

export interface ReadinessProbe {
  readonly initialDelayMs: number;
  readonly timeoutMs: number;
  readonly periodMs: number;
  /** So many in a row change the state. */
  readonly successThreshold: number;
  readonly failureThreshold: number;
  /** Undefined asks Envoy only. */
  readonly method: ProbeMethod | undefined;
}

export type ProbeMethod =
  | {
      readonly kind: "http";
      /** Empty for the workload's own address. */
      readonly host: string;
      readonly port: number;
      readonly path: string;
      readonly https: boolean;
      readonly headers: readonly (readonly [name: string, value: string])[];
    }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | { readonly kind: "exec"; readonly command: readonly string[] }
  | { readonly kind: "grpc"; readonly port: number; readonly service: string };

/** The probe of a proxy's configuration, which was checked when it was read; undefined when it has none. */
export function readinessProbe({ readinessProbe: probe }: ProxyConfig): ReadinessProbe | undefined {
  if (probe === undefined) return undefined;
  return {
    initialDelayMs: 1000 * (probe.initialDelaySeconds ?? 0),
    timeoutMs: 1000 * (probe.timeoutSeconds ?? 1),
    periodMs: 1000 * (probe.periodSeconds ?? 10),
    successThreshold: probe.successThreshold ?? 1,
    failureThreshold: probe.failureThreshold ?? 1,
    method: methodOf(probe),
  };
}

function methodOf({ httpGet, tcpSocket, exec, grpc }: ReadinessProbeConfig): ProbeMethod | undefined {
  if (httpGet !== undefined) {
    const { host = "", port = 0, path = "/", scheme = "http", httpHeaders = [] } = httpGet;
    const headers = httpHeaders.map(({ name = "", value = "" }) => [name, value] as const);
    return { kind: "http", host, port, path, https: scheme.toLowerCase() === "https", headers };
  }
  if (tcpSocket !== undefined) return { kind: "tcp", host: tcpSocket.host ?? "", port: tcpSocket.port ?? 0 };
  if (exec !== undefined) return { kind: "exec", command: exec.command ?? [] };
  if (grpc !== undefined) return { kind: "grpc", port: grpc.port ?? 0, service: grpc.service ?? "" };
  return undefined;
}
