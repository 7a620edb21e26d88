/** What proxies tell about themselves, for the live table. */
import { get } from "node:http";
import { text } from "node:stream/consumers";

export interface ProxyDetails {
  /** When the workload's certificate ends, in milliseconds since 1970. */
  readonly certificateEnds: number | undefined;
  /** When Envoy last took over configuration. */
  readonly lastPush: number | undefined;
  /** Configuration that Envoy refused since it started. */
  readonly rejected: number;
}

const CERTIFICATE = /^istio_agent_cert_expiry_seconds\{[^}]*\} (\S+)$/gm;
const UPDATED = /^envoy_(?:cluster_manager_cds|listener_manager_lds)_update_time(?:\{[^}]*\})? (\S+)$/gm;
const REJECTED = /^envoy_\w+_update_rejected(?:\{[^}]*\})? (\S+)$/gm;

/** Reads them from the metrics of a proxy. */
export function proxyDetails(metrics: string, now: number): ProxyDetails {
  const numbers = (pattern: RegExp) => [...metrics.matchAll(pattern)].map(([, value]) => Number(value));
  const seconds = numbers(CERTIFICATE)[0];
  const pushes = numbers(UPDATED).filter((time) => time > 0);
  return {
    certificateEnds: seconds === undefined ? undefined : now + seconds * 1000,
    lastPush: pushes.length === 0 ? undefined : Math.max(...pushes),
    rejected: numbers(REJECTED).reduce((sum, count) => sum + count, 0),
  };
}

const METRICS = { port: 15020, path: "/stats/prometheus" };
const TIMEOUT_MS = 2000;

/** Asks the proxy at an address; undefined when it does not answer. */
export async function askProxy(address: string, from: string): Promise<ProxyDetails | undefined> {
  try {
    const body = await new Promise<string>((resolve, reject) => {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      get({ host: address, ...METRICS, localAddress: from, agent: false, signal }, (response) =>
        text(response).then(resolve, reject),
      ).once("error", reject);
    });
    return proxyDetails(body, Date.now());
  } catch {
    // A proxy that is starting or gone has nothing to tell.
    return undefined;
  }
}
