/** Keeps the fabric's names and service addresses in step with the configuration. */
import { type Logger, SILENT } from "#lib/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import type { ObjectProblem } from "#model/ports.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { fileSource } from "#sources/file/file-source.ts";
import { FIRST_HOSTS, hostTable } from "../fabric/names.ts";
import { serveDns } from "../fabric/serve-dns.ts";
import { BASE_RULES, serviceRules } from "../fabric/service-rules.ts";
import { restoreRules } from "../host/namespaces.ts";
import { FABRIC } from "../plan/names.ts";
import type { MeshPlan } from "../plan/plan.ts";

const DNS_PORT = 53;

export interface ServicesInput {
  readonly plan: MeshPlan;
  readonly log: Logger;
  readonly onSnapshot: (snapshot: Snapshot) => void;
  /** Called when the first configuration has taken effect, with what is wrong in it. */
  readonly onFirst: (problems: readonly ObjectProblem[]) => void;
}

/** Serves names and translates service addresses until the signal aborts. */
export async function runServices(
  { plan, log, onSnapshot, onFirst }: ServicesInput,
  signal: AbortSignal,
): Promise<void> {
  const dns = await serveDns({ address: FABRIC.gateway, port: DNS_PORT, table: FIRST_HOSTS });
  await restoreRules(plan.fabric.netns, BASE_RULES);
  const rules = new LatestRules(plan.fabric.netns, log);
  // The control plane's log tells of later problems: saying them twice helps nobody.
  const source = fileSource({
    folders: [...plan.config, plan.paths.registry],
    meshConfigFile: plan.paths.meshConfig,
    features: DEFAULT_FEATURES,
    log: SILENT,
  });
  let first = true;
  const unsubscribe = source.subscribe((snapshot: Snapshot) => {
    onSnapshot(snapshot);
    dns.replace(hostTable(snapshot));
    const done = rules.apply(serviceRules(snapshot));
    if (first) void done.then(() => onFirst(source.problems()));
    first = false;
  });
  try {
    await source.run(signal);
  } finally {
    unsubscribe();
    dns.close();
  }
}

/** Applies one set of rules at a time; of those that arrive meanwhile only the last. */
class LatestRules {
  readonly #netns: string;
  readonly #log: Logger;
  #applied = "";
  #wanted = "";
  #running: Promise<void> | undefined;

  constructor(netns: string, log: Logger) {
    this.#netns = netns;
    this.#log = log;
  }

  /** Resolves when these rules, or later ones, are in effect. */
  apply(rules: string): Promise<void> {
    this.#wanted = rules;
    this.#running ??= this.#catchUp().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #catchUp(): Promise<void> {
    while (this.#applied !== this.#wanted) {
      const rules = this.#wanted;
      try {
        await restoreRules(this.#netns, rules);
      } catch (error) {
        this.#log.error("service addresses are not up to date", { reason: errorText(error) });
      }
      this.#applied = rules;
    }
  }
}
