import { errorText } from "#lib/mesh-error.ts";
import type { EnvoyAdmin } from "../envoy/admin.ts";

const SERVER_STATS = "^(server\\.state|listener_manager\\.workers_started)";
const STATS = `^(cluster_manager\\.cds|listener_manager\\.lds)\\.(update_success|update_rejected)$|${SERVER_STATS}`;
const TIMEOUT_MS = 3_000;
/** `server.state` by number. */
const SERVER_STATES = ["LIVE", "DRAINING", "PRE_INITIALIZING", "INITIALIZING"];

/**
 * Whether Envoy has its first configuration and serves. Once it has both it keeps them as long as it lives, so they are
 * asked for no more; that it still serves is shown by the probe itself, which comes through Envoy.
 */
export class EnvoyReadiness {
  readonly #admin: EnvoyAdmin;
  #serving = false;

  constructor(admin: EnvoyAdmin) {
    this.#admin = admin;
  }

  /** Why Envoy is not ready; undefined when it is. */
  async problem(): Promise<string | undefined> {
    if (this.#serving) return undefined;
    try {
      const text = await this.#admin.stats(STATS, TIMEOUT_MS);
      const problem = configProblem(text) ?? serverProblem(text);
      this.#serving = problem === undefined;
      return problem;
    } catch (thrown) {
      return errorText(thrown);
    }
  }
}

/** True when the Envoy that answers is of that epoch of hot restart, and serves. */
export async function servesEpoch(admin: EnvoyAdmin, epoch: number): Promise<boolean> {
  try {
    const text = await admin.stats(`${SERVER_STATS}|^server\\.hot_restart_epoch$`, TIMEOUT_MS);
    return parseStats(text).get("server.hot_restart_epoch") === epoch && serverProblem(text) === undefined;
  } catch {
    // While one epoch follows the other, nobody answers for a moment.
    return false;
  }
}

/** What the statistics of updates say against being configured. */
export function configProblem(text: string): string | undefined {
  const stats = parseStats(text);
  const count = (name: string) => stats.get(name) ?? 0;
  const cds = {
    done: count("cluster_manager.cds.update_success"),
    refused: count("cluster_manager.cds.update_rejected"),
  };
  const lds = {
    done: count("listener_manager.lds.update_success"),
    refused: count("listener_manager.lds.update_rejected"),
  };
  if (cds.done > 0 && lds.done > 0) return undefined;
  const counts = `cds updates: ${cds.done} successful, ${cds.refused} rejected; lds updates: ${lds.done} successful, ${lds.refused} rejected`;
  if (cds.done === 0 && lds.done === 0) return `config not received from XDS server (is Istiod running?): ${counts}`;
  if (cds.refused > 0 || lds.refused > 0) return `config received from XDS server, but was rejected: ${counts}`;
  return `config not fully received from XDS server: ${counts}`;
}

/** What the statistics of the server say against its serving. */
export function serverProblem(text: string): string | undefined {
  const stats = parseStats(text);
  const state = stats.get("server.state");
  const workers = stats.get("listener_manager.workers_started");
  if (state === undefined) return "server.state is not yet updated";
  if (state !== 0) return `server is not live, current state is: ${SERVER_STATES[state] ?? "UNKNOWN"}`;
  return workers === 1 ? undefined : "workers have not yet started";
}

function parseStats(text: string): ReadonlyMap<string, number> {
  const stats = new Map<string, number>();
  for (const line of text.split("\n")) {
    const [name = "", value = ""] = line.split(":");
    const number = Number.parseInt(value, 10);
    if (Number.isInteger(number)) stats.set(name.trim(), number);
  }
  return stats;
}
