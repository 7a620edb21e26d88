import { MeshError } from "#lib/mesh-error.ts";
import { fetchText } from "../http-client.ts";
import type { Connect } from "../place.ts";

/** Envoy's admin interface, which listens on loopback only. */
export interface EnvoyAdmin {
  /** Statistics whose names match, one `name: value` per line. */
  stats(filter: string, timeoutMs: number): Promise<string>;
  /** Tells clients to go: of a sidecar only those from outside, so that the app can still call others. */
  drainListeners(options: { readonly inboundOnly: boolean; readonly skipExit: boolean }): Promise<void>;
}

const DRAIN_TIMEOUT_MS = 5_000;

export interface AdminTarget {
  readonly host: string;
  readonly port: number;
  readonly connect: Connect | undefined;
}

export function envoyAdmin(target: AdminTarget): EnvoyAdmin {
  const call = async (method: string, path: string, timeoutMs: number) => {
    const { status, body } = await fetchText({ ...target, path, method, timeoutMs });
    if (status === 200) return body;
    throw new MeshError("HTTP_FAILED", `Envoy answered ${status} to ${method} ${path}: ${body.trim()}`);
  };
  return {
    stats: (filter, timeoutMs) => call("GET", `/stats?usedonly&filter=${encodeURIComponent(filter)}`, timeoutMs),
    drainListeners: async ({ inboundOnly, skipExit }) => {
      const query = [inboundOnly ? "inboundonly" : "", "graceful", skipExit ? "skip_exit" : ""].filter(
        (part) => part !== "",
      );
      await call("POST", `/drain_listeners?${query.join("&")}`, DRAIN_TIMEOUT_MS);
    },
  };
}
