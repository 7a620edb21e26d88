/** Starts what fetches Wasm modules when the first extension comes: most workloads never have one. */
import { access, constants } from "node:fs/promises";
import { resolve } from "node:path";
import type { Logger } from "#lib/log/log.ts";
import type { ProxyEnvironment } from "#lib/net/environment-proxy.ts";
import type { AgentMetrics } from "../metrics.ts";
import { type Place, pathIn } from "../place.ts";
import type { WasmConfig } from "../xds-proxy/xds-config.ts";

export interface ConverterOptions {
  readonly config: WasmConfig;
  readonly proxies: ProxyEnvironment;
  /** Of the workload, such as `default.svc.cluster.local`. */
  readonly dnsDomain: string;
  readonly place: Pick<Place, "folder">;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
  readonly done: AbortSignal;
}

type Convert = (resources: readonly Uint8Array[]) => Promise<readonly Uint8Array[]>;

/** Mounted in every pod; where it is not, modules are kept below the agent's own folder. */
const DATA_FOLDER = "/var/lib/istio/data";
const DEFAULT_DOMAIN = "cluster.local";

export function extensionConverter(options: ConverterOptions): Convert {
  let started: Promise<Convert> | undefined;
  return async (resources) => {
    started ??= start(options);
    return (await started)(resources);
  };
}

async function start({
  config,
  proxies,
  dnsDomain,
  place,
  log: given,
  metrics,
  done,
}: ConverterOptions): Promise<Convert> {
  const [{ convertExtensions }, { ModuleCache }] = await Promise.all([
    import("./convert.ts"),
    import("./module-cache.ts"),
  ]);
  const log = given.scope("wasm");
  const folder = await dataFolder(place);
  const [, clusterDomain = DEFAULT_DOMAIN] = /(?:^|\.)svc\.(.+)$/.exec(dnsDomain) ?? [];
  const cache = new ModuleCache({ ...config, proxies, clusterDomain, folder, log, metrics: metrics.wasm });
  void cache.run(done);
  return (resources) => convertExtensions(resources, { fetchModule: cache.get, log, metrics: metrics.wasm });
}

async function dataFolder(place: Pick<Place, "folder">): Promise<string> {
  try {
    if (place.folder !== "") throw new Error("it belongs to the agent, not to one of its workloads");
    await access(DATA_FOLDER, constants.W_OK);
    return DATA_FOLDER;
  } catch {
    return resolve(pathIn(place, `.${DATA_FOLDER}`)); // Envoy may have another working folder
  }
}
