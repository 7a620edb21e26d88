/**
 * A mesh while it runs. Lives inside the fabric's network namespace, from where every member can be reached as from a node
 * of a cluster.
 *
 *   files -> network -> names and service addresses ----+
 *                   \-> control plane -> root cert -> proxies -> apps -> ready
 *                   \-> capture rules of each member --+
 *
 * What a person asks of it afterwards (`changes.ts`) is carried out one thing after the other.
 */
import type { Socket } from "node:dgram";
import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { ProcessId } from "#lib/process-id.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { describeRefused, RefusedNames } from "../egress/refused-names.ts";
import { machineNameServers, type UpstreamDns, upstreamDns } from "../egress/upstream-dns.ts";
import { hintsOf } from "../hints/hints.ts";
import type { PlaceLimit } from "../host/keepers.ts";
import { setUpNetwork } from "../host/namespaces.ts";
import { makeFolders, ownFilesIn } from "../host/write-files.ts";
import { refreshTokens, rootCertificate } from "../identity/identities.ts";
import type { TokenIssuer } from "../identity/issuer.ts";
import { CONTROL_PLANE } from "../mesh/check-members.ts";
import { memberKey, shortestName } from "../mesh/mesh.ts";
import type { MeshPlan } from "../plan/plan.ts";
import { type OpenPublished, PublishedPorts } from "../ports/published.ts";
import { jobsExitCode } from "../status/jobs.ts";
import { pagesOf } from "../status/pages.ts";
import { startProblem } from "../status/start-problem.ts";
import type { MemberStatus, MeshStatus } from "../status/status.ts";
import { StatusFile } from "../status/status-file.ts";
import { SharedAgentRun } from "../supervise/shared-agent-run.ts";
import { ControlPlaneRun } from "./control-plane-run.ts";
import { EventLines } from "./event-lines.ts";
import { untilInSync } from "./in-sync.ts";
import type { MemberRun } from "./member-run.ts";
import { Members, makePods } from "./members.ts";
import { Registry } from "./registry.ts";
import { FabricServices } from "./services.ts";

export interface MeshRunInput {
  readonly plan: MeshPlan;
  readonly issuer: TokenIssuer;
  readonly published: readonly OpenPublished[];
  /** In the machine's network; a mesh without a way out has none. */
  readonly resolver: Socket | undefined;
  readonly runner: ProcessId;
  readonly startTimeoutMs: number;
  /** End with the jobs. */
  readonly exitWhenDone: boolean;
  readonly log: Logger;
  readonly onReady: (status: MeshStatus) => void;
}

/** The first that the kernel is asked for: what it lacks shows here. */
async function makeFabric({ fabric, controlPlane }: MeshPlan): Promise<PlaceLimit> {
  try {
    await setUpNetwork(fabric);
    return await makePods(fabric.netns, [controlPlane]);
  } catch (cause) {
    if (!(cause instanceof MeshError)) throw cause;
    throw new MeshError(
      "KERNEL_REFUSED",
      "Cannot make the network of the mesh: the kernel refuses; it needs bridge and veth devices (modprobe bridge veth)",
      { cause },
    );
  }
}

const SHARED_PROC_HINT =
  "hint: the kernel refuses a /proc for each workload (this is a container that hides parts of its own): workloads see the names of all processes, but may not touch them";
const POLL_MS = 25;
/** How long the news of the last member may take to reach all proxies before the mesh is called ready without. */
const SYNC_TIMEOUT_MS = 10_000;

/** What proxies should know beside the endpoints of all members that are ready. */
interface Expected {
  /** A member, by `name.namespace`, that is about to go. */
  readonly leaving?: string;
  /** Texts that objects of the configuration hold, or do not hold any more. */
  readonly mentioned?: readonly string[];
  readonly forgotten?: readonly string[];
}

/** Nothing more is to be waited for. */
function isSettled({ ready, state }: MemberStatus): boolean {
  return ready || state !== "running";
}

export class MeshRun {
  readonly #input: MeshRunInput;
  readonly #status: StatusFile;
  readonly #startedAt = new Date();
  readonly #firstConfig = Promise.withResolvers<void>();
  readonly #upstream: UpstreamDns | undefined;
  readonly #refused = new RefusedNames();
  readonly #stop = Promise.withResolvers<void>();
  #phase: MeshStatus["phase"] = "starting";
  #snapshot: Snapshot | undefined;

  /** As last applied; members that joined by themselves are not in it. */
  plan: MeshPlan;
  exitWhenDone: boolean;
  readonly controlPlane: ControlPlaneRun;
  readonly members: Members;
  readonly sharedAgent = new SharedAgentRun();
  readonly registry: Registry;
  readonly published = new PublishedPorts();
  readonly services: FabricServices;
  readonly events: EventLines;
  /** Resolves when the mesh was ready for the first time, or will never be. */
  readonly started = Promise.withResolvers<void>();
  /** Aborts when the mesh ends. */
  readonly ending = new AbortController();

  constructor(input: MeshRunInput) {
    const { plan, log } = input;
    this.#input = input;
    this.plan = plan;
    this.exitWhenDone = input.exitWhenDone;
    this.events = new EventLines(log);
    this.registry = new Registry(plan.paths.registry);
    this.#status = new StatusFile(plan.paths.status, () => this.status(), log);
    const onChange = () => this.#changed();
    this.controlPlane = new ControlPlaneRun(plan.controlPlane, onChange);
    this.#upstream = input.resolver && upstreamDns({ socket: input.resolver, servers: machineNameServers });
    this.services = new FabricServices(plan, {
      paths: plan.paths,
      netns: plan.fabric.netns,
      range: plan.range,
      log,
      outside: { ask: this.#upstream?.ask, onRefused: (name, from) => this.#onRefused(name, from) },
      onSnapshot: (snapshot) => {
        this.#snapshot = snapshot;
      },
      onFirst: () => this.#firstConfig.resolve(),
      onProblem: (line) => this.events.add(line),
      onRead: () => this.#status.touch(),
    });
    const root = rootCertificate(plan.paths.ca, this.ending.signal);
    this.members = new Members({
      issuer: input.issuer,
      registry: this.registry,
      sharedAgent: this.sharedAgent,
      fabric: plan.fabric.netns,
      root: Promise.all([root, this.#firstConfig.promise]).then(([pem]) => pem),
      onChange,
      onEvent: (line) => this.events.add(line),
      log,
    });
  }

  /** Starts the mesh and keeps it up until the signal aborts or its jobs are done, then ends its processes. */
  async run(signal: AbortSignal): Promise<number> {
    const { issuer, log } = this.#input;
    const rest = new AbortController();
    const stop = () => {
      this.ending.abort();
      this.#firstConfig.resolve();
      this.#stop.resolve();
    };
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    const running: Promise<unknown>[] = [];
    try {
      await this.#prepare();
      const onFailure = (error: unknown) => log.error("tokens are not renewed", { reason: errorText(error) });
      const members = () => this.members.all().map(({ plan }) => plan);
      running.push(this.services.run(rest.signal), refreshTokens({ members, issuer, onFailure }, rest.signal));
      for (const part of running) part.catch((error: unknown) => this.#stop.reject(error));
      this.controlPlane.start();
      if (this.plan.sharedAgent !== undefined) await this.sharedAgent.start(this.plan.sharedAgent);
      await this.members.add(this.plan.members);
      await Promise.race([this.#untilStarted(), this.#stop.promise]);
      this.started.resolve();
      await this.#stop.promise;
      return jobsExitCode(this.jobs()) ?? 0;
    } finally {
      stop();
      this.started.resolve();
      this.#phase = "stopping";
      this.#status.touch();
      await this.members.stop();
      await this.sharedAgent.stop();
      await this.controlPlane.stop();
      rest.abort();
      await Promise.allSettled(running);
      this.#upstream?.close();
      this.published.closeOthers([]);
      await this.#status.close();
    }
  }

  status(): MeshStatus {
    const { runner } = this.#input;
    const { plan } = this;
    const snapshot = this.#snapshot;
    return {
      id: plan.id,
      name: plan.name,
      file: plan.file,
      stateFolder: plan.paths.root,
      runner,
      phase: this.#phase,
      startedAt: this.#startedAt.toISOString(),
      egress: this.#upstream !== undefined,
      notes: [...this.#refused.notes(), ...this.services.problems()],
      published: this.published.ports.map((port) => {
        const target = this.members.get(port.member)?.plan.member;
        return { ...port, pages: snapshot && target ? pagesOf(snapshot, target, port.port) : [] };
      }),
      members: [this.controlPlane.status(), ...this.#inOrder().map((member) => member.status())],
    };
  }

  /** Members as far as jobs are concerned. */
  jobs(): Parameters<typeof jobsExitCode>[0] {
    return this.members.all().map((run) => ({ member: run.plan.member, status: run.status() }));
  }

  /**
   * Waits until these members, by `name.namespace`, are ready, and all proxies know of them. Throws when one of them will
   * not be, or not in time.
   */
  async untilReady(keys: ReadonlySet<string>, timeoutMs: number): Promise<void> {
    const { signal } = this.ending;
    const deadline = Date.now() + timeoutMs;
    const announced = new Set(this.#phase === "ready" ? this.#readyKeys() : []);
    while (!signal.aborted) {
      const { members } = this.status();
      const wanted = members.filter((member) => keys.has(memberKey(member)));
      for (const member of wanted) {
        if (!member.ready || announced.has(memberKey(member))) continue;
        announced.add(memberKey(member));
        this.events.add(`${shortestName(member, members)} ready`);
      }
      if (wanted.every(isSettled)) {
        await this.untilInSync(SYNC_TIMEOUT_MS);
        // Some end a moment after they began.
        if (this.status().members.every((member) => !keys.has(memberKey(member)) || isSettled(member))) return;
      }
      const failed = this.members.all().find((run: MemberRun) => run.failure !== undefined);
      if (failed !== undefined) throw failed.failure;
      const problem = await startProblem(wanted, this.jobs(), Date.now() >= deadline);
      if (problem !== undefined) throw new MeshError("START_FAILED", problem);
      await sleep(POLL_MS, signal);
    }
  }

  /** Waits until the proxy of a member, by `name.namespace`, is ready; there may be an app to come or none. */
  async untilProxyReady(key: string, timeoutMs: number): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    const run = this.members.get(key);
    while (run !== undefined && !run.proxyReady && !this.ending.signal.aborted) {
      if (run.failure !== undefined) throw run.failure;
      const problem = await startProblem([run.status()], [], Date.now() >= deadline);
      if (problem !== undefined) throw new MeshError("START_FAILED", problem);
      await sleep(POLL_MS, this.ending.signal);
    }
    await this.untilInSync(SYNC_TIMEOUT_MS);
  }

  /** Waits until all proxies know all endpoints, and what else is expected; false when that took too long. */
  async untilInSync(timeoutMs: number, expected: Expected = {}): Promise<boolean> {
    const { issuer, log } = this.#input;
    // Proxies go on with what they have until it comes back, and no news reaches them before.
    if (!this.controlPlane.ready) return true;
    const { leaving, mentioned = [], forgotten = [] } = expected;
    const { name, namespace } = CONTROL_PLANE;
    const { address, port } = this.plan.controlPlane.readiness;
    const runs = this.members.all();
    const wanted = {
      mentioned: [
        ...runs.filter(({ ready, plan }) => ready && plan.key !== leaving).map(({ plan }) => plan.address),
        ...mentioned,
      ],
      forgotten,
      proxies: runs.filter((run) => run.plan.proxy !== undefined && run.proxyReady).length,
    };
    const token = await issuer.token(namespace, name);
    const done = await untilInSync({ address, port, token, wanted, timeoutMs }, this.ending.signal);
    if (!done && !this.ending.signal.aborted) log.warn("some proxies do not know all of the configuration yet");
    return done;
  }

  /** Makes the status file say what is so now. */
  writeStatus(): Promise<void> {
    return this.#status.write();
  }

  /** Says what in the configuration is probably not meant. */
  sayHints(): void {
    const { file, lines } = this.plan;
    const members = this.plan.members.map(({ member }) => member);
    const hints = hintsOf({ members, objects: this.services.objects(), file, lines });
    for (const hint of hints) this.events.add(`hint: ${hint}`);
  }

  async #prepare(): Promise<void> {
    const { published } = this.#input;
    const { plan } = this;
    await makeFolders(plan.folders);
    this.#status.touch();
    const limit = await makeFabric(plan);
    if (limit === "shared-proc") this.events.add(SHARED_PROC_HINT);
    await ownFilesIn(plan.paths.ca, plan.controlPlane.process.account.uid);
    for (const port of published) {
      const target = plan.members.find(({ key }) => key === port.port.member);
      if (target === undefined) throw new Error(`no member "${port.port.member}" for a published port`);
      this.published.add(port, target.address);
    }
    this.events.add(`network ready: ${plan.members.length + 2} namespaces named mizzen-${plan.id}-*`);
  }

  async #untilStarted(): Promise<void> {
    const keys = new Set(this.status().members.map(memberKey));
    await this.untilReady(keys, this.#input.startTimeoutMs);
    if (this.ending.signal.aborted) return;
    this.sayHints();
    this.#phase = "ready";
    await this.#status.write();
    this.#input.onReady(this.status());
  }

  /** As mesh.yaml has them; those who joined come last. */
  #inOrder(): readonly MemberRun[] {
    const places = new Map(this.plan.members.map(({ key }, i) => [key, i]));
    const placeOf = ({ plan }: MemberRun) => places.get(plan.key) ?? places.size;
    return this.members.all().toSorted((a, b) => placeOf(a) - placeOf(b));
  }

  #readyKeys(): readonly string[] {
    return this.status()
      .members.filter(({ ready }) => ready)
      .map(memberKey);
  }

  /** A person who sees that a name does not resolve is told once why, and what to do. */
  #onRefused(name: string, from: string): void {
    const pods = this.members.all().map(({ plan }) => plan);
    const who = pods.find(({ address }) => address === from)?.member.name;
    // `service.namespace`, of a service that is not there.
    const isInside = pods.some(({ member }) => name.endsWith(`.${member.namespace}`));
    if (who === undefined || isInside || !this.#refused.add(who, name)) return;
    this.events.add(`hint: ${describeRefused(who, [name])}`);
    this.#status.touch();
  }

  #changed(): void {
    this.#status.touch();
    this.members.reconsider();
    if (this.exitWhenDone && jobsExitCode(this.jobs()) !== undefined) this.#stop.resolve();
  }
}
