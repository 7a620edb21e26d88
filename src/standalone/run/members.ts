/** The members of a running mesh: made, watched and removed, each on its own. */
import { rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { removeGroups } from "../host/control-groups.ts";
import { keepPlace, type PlaceLimit } from "../host/keepers.ts";
import { makeNamespace, namespaceInode, removeNamespace, setUpNetwork } from "../host/namespaces.ts";
import { endProcessesIn } from "../host/processes.ts";
import { makeFolders, writeAtomically } from "../host/write-files.ts";
import { writeRootCertificate, writeTokens } from "../identity/identities.ts";
import type { TokenIssuer } from "../identity/issuer.ts";
import { isJob, workloadKey } from "../mesh/mesh.ts";
import { cableName } from "../plan/names.ts";
import type { MemberPlan, PodPlan } from "../plan/plan.ts";
import type { SharedAgent } from "../supervise/shared-proxy.ts";
import { MemberRun } from "./member-run.ts";
import type { Registry } from "./registry.ts";

export interface MembersInput {
  readonly issuer: TokenIssuer;
  readonly registry: Registry;
  readonly sharedAgent: SharedAgent;
  /** Name of the fabric's namespace. */
  readonly fabric: string;
  /** Resolves to the root certificate when proxies can be started; to undefined when the mesh ends before. */
  readonly root: Promise<string | undefined>;
  readonly onChange: () => void;
  /** Something that a person should know. */
  readonly onEvent: (line: string) => void;
  readonly log: Logger;
}

const GRACE_MS = 500;

export class Members {
  readonly #input: MembersInput;
  readonly #runs = new Map<string, MemberRun>();

  constructor(input: MembersInput) {
    this.#input = input;
  }

  all(): readonly MemberRun[] {
    return [...this.#runs.values()];
  }

  get(key: string): MemberRun | undefined {
    return this.#runs.get(key);
  }

  /** Makes the places of new members and starts what runs in them. Either all of them are there afterwards, or none. */
  async add(plans: readonly MemberPlan[]): Promise<void> {
    try {
      await makePods(this.#input.fabric, plans);
      await writeTokens(plans, this.#input.issuer);
    } catch (error) {
      await Promise.allSettled(plans.map((plan) => this.#removePod(plan)));
      throw error;
    }
    for (const plan of plans) this.#runs.set(plan.key, this.#newRun(plan));
    for (const { key } of plans) this.#runs.get(key)?.start();
  }

  /** Ends and removes a member, whatever state it is in. */
  async remove(key: string): Promise<void> {
    const run = this.#runs.get(key);
    if (run === undefined) return;
    await run.stop();
    this.#runs.delete(key);
    await this.#removePod(run.plan);
    this.#input.onChange();
  }

  /** Ends all processes: apps first, so that their last calls still have a proxy. */
  async stop(): Promise<void> {
    await Promise.all(this.all().map((run) => run.stopApp()));
    await Promise.all(this.all().map((run) => run.stop()));
  }

  /** Something changed: apps that wait for others may be allowed to start. */
  reconsider(): void {
    for (const run of this.#runs.values()) run.reconsider();
  }

  #newRun(plan: MemberPlan): MemberRun {
    const { onChange, onEvent, root, sharedAgent } = this.#input;
    const run: MemberRun = new MemberRun(plan, {
      onChange,
      onEvent,
      sharedAgent,
      onReady: (ready) => this.#list(run, ready),
      missing: () => this.#missing(run.plan),
      prerequisites: root.then(async (pem) => {
        if (pem !== undefined) await writeRootCertificate([plan], pem);
      }),
    });
    return run;
  }

  /** What of `after` is not there yet, in words. */
  #missing({ member }: MemberPlan): string | undefined {
    const waiting = member.after.flatMap((key) => {
      const replicas = this.all().filter((run) => workloadKey(run.plan.member) === key);
      if (replicas.length === 0) return [`${key} (no replicas)`];
      return replicas.filter((run) => !isAvailable(run)).map((run) => describe(run));
    });
    return waiting.length === 0 ? undefined : `waits for ${waiting.join(", ")}`;
  }

  #list({ plan: { key, member, address } }: MemberRun, ready: boolean): void {
    const { log, registry } = this.#input;
    const change = ready ? registry.add(member, address) : registry.remove(member);
    log.info(ready ? "ready" : "not ready", { member: key });
    change.catch((error) => log.error("the registry is not up to date", { member: key, reason: errorText(error) }));
  }

  async #removePod({ place, key, member, app }: MemberPlan): Promise<void> {
    const { fabric, registry } = this.#input;
    await registry.remove(member);
    const inode = await namespaceInode(place.netns);
    if (inode !== undefined) await endProcessesIn(new Set([inode]), GRACE_MS);
    // The kernel takes its time to forget a namespace, and until then the cable's name would be taken.
    await setUpNetwork({ netns: fabric, sysctls: {}, ip: [`link del ${cableName(key)}`] }).catch(() => undefined);
    await removeNamespace(place.netns);
    await removeGroups(app?.groups ?? []);
    await rm(dirname(place.etc), { recursive: true, force: true });
  }
}

type Pod = PodPlan & { readonly proxy?: MemberPlan["proxy"] };

/** Folders, files, namespaces and cables of pods. */
export async function makePods(fabric: string, pods: readonly Pod[]): Promise<PlaceLimit> {
  if (pods.length === 0) return undefined;
  await makeFolders(pods.flatMap(({ folders }) => folders));
  await Promise.all(pods.flatMap(({ files }) => files).map(writeAtomically));
  await Promise.all(pods.map(({ place }) => makeNamespace(place.netns)));
  await setUpNetwork({ netns: fabric, sysctls: {}, ip: pods.flatMap(({ cable }) => cable) });
  await Promise.all(pods.map(({ network }) => setUpNetwork(network)));
  const places = pods.flatMap(({ place, proxy }) => (proxy === undefined ? [place] : [place, proxy.place]));
  const limits = await Promise.all(places.map(keepPlace));
  return limits.find((limit) => limit !== undefined);
}

function isAvailable(run: MemberRun): boolean {
  return isJob(run.plan.member) ? run.state === "done" : run.ready;
}

function describe(run: MemberRun): string {
  const { name, reason, state } = run.status();
  if (!isJob(run.plan.member)) return `${name} (${reason})`;
  return state === "failed" ? `job ${name}, which failed` : `job ${name} (${run.ready ? "not done yet" : reason})`;
}
