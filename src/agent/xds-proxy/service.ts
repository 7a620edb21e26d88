/**
 * `envoy.service.discovery.v3.AggregatedDiscoveryService` on the agent's socket. Each stream of Envoy gets a stream of
 * its own to the control plane, of the same kind, over a connection of its own:
 *
 *   Envoy --requests--> agent --requests, and ours once after the first for listeners--> control plane
 *   Envoy <--responses-- agent <--responses-- control plane
 *              |           '-- of types that are ours: handled, acknowledged, never forwarded
 *              '-- extensions with Wasm modules, once the modules are here
 *
 * The end of either stream is the end of both: after it Envoy starts its whole sequence anew, at whatever replica answers.
 * Streams know nothing of each other, since two Envoys, or clients without one, may be there at the same time.
 */
import { readFileSync, unwatchFile, watchFile } from "node:fs";
import { readFile } from "node:fs/promises";
import type { Method, Methods } from "#lib/grpc/server-call.ts";
import { STATUS } from "#lib/grpc/status.ts";
import type { Logger } from "#lib/log/log.ts";
import type { ControlPlaneOptions } from "../control-plane.ts";
import type { WorkloadHealth } from "../health/workload-health.ts";
import { QueueBudget } from "../limits/queue-budget.ts";
import type { AgentMetrics } from "../metrics.ts";
import { Connections } from "./connections.ts";
import { ProxyStream } from "./proxy-stream.ts";
import { DELTA, SOTW, type StreamKind } from "./stream-kind.ts";

export interface XdsProxyOptions {
  readonly upstream: ControlPlaneOptions;
  /** What to do with the resource of a type that is the agent's own; throwing refuses it. */
  readonly ownTypes: ReadonlyMap<string, (resource: Uint8Array) => void>;
  /** Makes extensions (each an `Any`) fit for Envoy; rejecting refuses them. Absent: they pass as they are. */
  readonly convertExtensions?: ((resources: readonly Uint8Array[]) => Promise<readonly Uint8Array[]>) | undefined;
  /** Told to the control plane on each stream, where it is watched. */
  readonly health?: WorkloadHealth | undefined;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
}

const SERVICE = "/envoy.service.discovery.v3.AggregatedDiscoveryService";
/** Mounted files change by a new link, which only looking at them shows. */
const ROOT_CHECK_MS = 2_000;
/** Each has a connection to the control plane of its own. An Envoy needs one, two during a hot restart. */
const MAX_STREAMS = 64;
const MAX_QUEUED_BYTES = 32 * 1024 * 1024;

export class XdsProxy {
  readonly #options: XdsProxyOptions;
  readonly #connections: Connections;
  readonly #streams = new Set<ProxyStream>();
  readonly #budget = new QueueBudget(MAX_QUEUED_BYTES);
  #count = 0;

  constructor(options: XdsProxyOptions) {
    this.#options = options;
    this.#connections = new Connections(options.upstream, (reason) => options.log.warn(reason));
  }

  /** What to serve on the agent's socket. */
  get service(): Methods {
    return Object.fromEntries([DELTA, SOTW].map((kind) => [methodPath(kind), this.#method(kind)]));
  }

  /** Connects to the control plane for the stream that an Envoy, which is starting, will open. */
  connectAhead(signal: AbortSignal): Promise<void> {
    return this.#connections.connectAhead(signal);
  }

  /** Tells the workload's health and follows the root certificate until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { health, upstream } = this.#options;
    const unsubscribe = health?.subscribe(() => {
      for (const stream of this.#streams) stream.sendHealth();
    });
    const { rootCertificate = "system" } = upstream;
    const unwatch = rootCertificate === "system" ? undefined : this.#watchRoot(rootCertificate);
    if (!signal.aborted)
      await new Promise((resolve) => {
        signal.addEventListener("abort", resolve, { once: true });
      });
    unsubscribe?.();
    unwatch?.();
    this.#connections.close();
  }

  #method(kind: StreamKind): Method {
    return (downstream) => {
      if (this.#streams.size >= MAX_STREAMS) {
        this.#options.log.debug("refused a stream", { reason: `${MAX_STREAMS} streams are open` });
        return downstream.end({ code: STATUS.RESOURCE_EXHAUSTED, details: `${MAX_STREAMS} streams are open` });
      }
      const stream = new ProxyStream({
        ...this.#options,
        budget: this.#budget,
        connections: this.#connections,
        kind,
        downstream,
        id: ++this.#count,
        path: methodPath(kind),
      });
      this.#options.log.debug("accepted XDS connection from Envoy, forwarding to upstream XDS server");
      this.#streams.add(stream);
      void stream.run().finally(() => this.#streams.delete(stream));
    };
  }

  /** Streams whose server was recognised by the old root move to connections for which the new one was asked. */
  #watchRoot(file: string): () => void {
    const read = () => readFile(file, "utf8").catch(() => "");
    let known = readNow(file);
    const onChange = async () => {
      const current = await read();
      if (current === known || current === "") return;
      known = current;
      this.#connections.close();
      for (const stream of this.#streams) void stream.move("the root certificate changed");
    };
    const listener = () => void onChange();
    watchFile(file, { interval: ROOT_CHECK_MS, persistent: false }, listener);
    // A change before the watch has looked at the file for the first time is no change to it.
    const first = setTimeout(listener, ROOT_CHECK_MS).unref();
    return () => {
      clearTimeout(first);
      unwatchFile(file, listener);
    };
  }
}

/** At once, so that no change goes unnoticed; empty if there is no file. */
function readNow(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return ""; // it may come later
  }
}

function methodPath({ method }: StreamKind): string {
  return `${SERVICE}/${method}`;
}
