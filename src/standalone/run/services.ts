/** Keeps the fabric's names and service addresses in step with the configuration. */

import { isOfKind } from "#config/kinds/kind.ts";
import { workloadEntryKind } from "#config/kinds/workload-entry/kind.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { type FileSource, fileSource } from "#sources/file/file-source.ts";
import { formatProblem } from "#sources/report.ts";
import { firstHosts, type HostTable, hostTable } from "../fabric/names.ts";
import { type DnsServer, type OutsideNames, serveDns } from "../fabric/serve-dns.ts";
import { BASE_RULES, serviceRules } from "../fabric/service-rules.ts";
import { restoreRules } from "../host/namespaces.ts";
import type { AddressRange } from "../mesh/address-range.ts";
import { FABRIC } from "../plan/names.ts";
import type { MeshPlan } from "../plan/plan.ts";
import type { StatePaths } from "../plan/state-paths.ts";

const DNS_PORT = 53;
/** More would hide the members that they are shown beside. */
const MAX_PROBLEMS = 20;

export interface ServicesInput {
  readonly paths: StatePaths;
  /** Name of the fabric's namespace. */
  readonly netns: string;
  readonly range: AddressRange;
  readonly log: Logger;
  /** Who answers for names outside the mesh. */
  readonly outside: OutsideNames;
  readonly onSnapshot: (snapshot: Snapshot) => void;
  /** Called when a configuration that is read for the first time has taken effect. */
  readonly onFirst: () => void;
  /** Told once of each thing that is wrong with the files, at the start and whenever they change. */
  readonly onProblem: (line: string) => void;
  /** Called after each reading of the files. */
  readonly onRead: () => void;
}

type ConfigPlan = Pick<MeshPlan, "config" | "onUnreadablePolicy">;

export class FabricServices {
  readonly #input: ServicesInput;
  #plan: ConfigPlan;
  #round = new AbortController();
  /** That which was read last. */
  #source: FileSource | undefined;

  constructor(plan: ConfigPlan, input: ServicesInput) {
    this.#plan = plan;
    this.#input = input;
  }

  /** Reads other files and folders from now on; what they say replaces what is known when they have been read. */
  reconfigure(plan: ConfigPlan): void {
    this.#plan = plan;
    this.#round.abort();
  }

  /** The user's objects as they are now. */
  objects(): readonly ConfigObject[] {
    return this.#source?.objects() ?? [];
  }

  /** What is wrong with the files as they are now, a line for each. */
  problems(): readonly string[] {
    const problems = this.#source?.problems() ?? [];
    const lines = problems.slice(0, MAX_PROBLEMS).map((problem) => `${problem.severity}: ${formatProblem(problem)}`);
    const rest = problems.length - lines.length;
    return rest === 0 ? lines : [...lines, `${rest} more problems of files: see \`mizzen logs istiod\``];
  }

  /** Serves names and translates service addresses until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { netns, log, outside, range } = this.#input;
    // The second one is for proxies whose questions would be captured on their way to the first (`plan/one-account.ts`).
    const addresses = [range.gateway, FABRIC.prober];
    const servers = await Promise.all(
      addresses.map((address) => serveDns({ address, port: DNS_PORT, table: firstHosts(range), outside })),
    );
    const dns = {
      replace(table: HostTable) {
        for (const server of servers) server.replace(table);
      },
    };
    try {
      await restoreRules(netns, BASE_RULES);
      const rules = new LatestRules(netns, log);
      while (!signal.aborted) {
        this.#round = new AbortController();
        await this.#follow({ dns, rules }, AbortSignal.any([signal, this.#round.signal]));
      }
    } finally {
      for (const server of servers) server.close();
    }
  }

  async #follow({ dns, rules }: Followers, signal: AbortSignal): Promise<void> {
    const { paths, onSnapshot, onFirst, onProblem, onRead } = this.#input;
    const source = fileSource({
      folders: [...this.#plan.config, paths.registry, paths.applied],
      meshConfigFile: paths.meshConfig,
      features: { ...DEFAULT_FEATURES, unreadableDeny: this.#plan.onUnreadablePolicy === "deny" },
      log: problemLogger(onProblem),
      onRead,
    });
    let first = true;
    const unsubscribe = source.subscribe((snapshot: Snapshot) => {
      this.#source = source;
      onSnapshot(snapshot);
      dns.replace(hostTable({ snapshot, workloads: workloadNames(source.objects()), range: this.#input.range }));
      const done = rules.apply(serviceRules(snapshot));
      if (first) void done.then(onFirst);
      first = false;
    });
    try {
      await source.run(signal);
    } finally {
      unsubscribe();
    }
  }
}

/** Names of workloads by address. */
function workloadNames(objects: readonly ConfigObject[]): ReadonlyMap<string, string> {
  const workloads = objects.filter(isOfKind(workloadEntryKind));
  return new Map(workloads.map(({ metadata, spec }) => [spec.address ?? "", metadata.name]));
}

/** Passes on what is wrong: who has just saved a file looks at the mesh, and not at the control plane's log. */
function problemLogger(onProblem: (line: string) => void): Logger {
  const logger: Logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: (message) => onProblem(`warning: ${message}`),
    error: (message) => onProblem(`error: ${message}`),
    scope: () => logger,
  };
  return logger;
}

/** Who is told of every change. */
interface Followers {
  readonly dns: Pick<DnsServer, "replace">;
  readonly rules: LatestRules;
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
