/**
 * Carries out a plan, from nothing to a running mesh and back. Runs inside the fabric's network namespace, from where every
 * member can be reached as from a node of a cluster.
 *
 *   files -> network -> names and service addresses ----+
 *                   \-> control plane -> root cert -> proxies -> apps -> ready
 *                   \-> capture rules of each member --+
 */
import type { Server } from "node:net";
import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { ObjectProblem } from "#model/ports.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { forward } from "../fabric/forward.ts";
import { makeNamespace, setUpNetwork } from "../host/namespaces.ts";
import type { ProcessId } from "../host/processes.ts";
import { makeFolders, writeAtomically } from "../host/write-files.ts";
import { CONTROL_PLANE } from "../mesh/check-members.ts";
import { memberKey, shortestName } from "../mesh/mesh.ts";
import type { MemberPlan, MeshPlan } from "../plan/plan.ts";
import { ControlPlaneRun } from "./control-plane-run.ts";
import { refreshTokens, rootCertificate, writeRootCertificate, writeTokens } from "./identities.ts";
import { untilInSync } from "./in-sync.ts";
import type { TokenIssuer } from "./issuer.ts";
import { MemberRun } from "./member-run.ts";
import { pagesOf } from "./pages.ts";
import { Registry } from "./registry.ts";
import { runServices } from "./services.ts";
import { startProblem } from "./start-problem.ts";
import type { MeshStatus, PublishedPort } from "./status.ts";
import { StatusFile } from "./status-file.ts";

export interface MeshRunInput {
  readonly plan: MeshPlan;
  readonly issuer: TokenIssuer;
  readonly published: readonly Published[];
  readonly runner: ProcessId;
  readonly startTimeoutMs: number;
  readonly log: Logger;
  /** Lines for the person who waits for the mesh. */
  readonly onProgress: (line: string) => void;
  readonly onReady: (status: MeshStatus) => void;
}

/** A port of this machine that is open, and where it leads. */
export interface Published extends PublishedPort {
  readonly server: Server;
  readonly target: MemberPlan;
}

const POLL_MS = 25;
/** How long the news of the last member may take to reach all proxies before the mesh is called ready without. */
const SYNC_TIMEOUT_MS = 10_000;

export class MeshRun {
  readonly #input: MeshRunInput;
  readonly #controlPlane: ControlPlaneRun;
  readonly #members: readonly MemberRun[];
  readonly #registry: Registry;
  readonly #status: StatusFile;
  readonly #startedAt = new Date();
  readonly #closers: (() => void)[] = [];
  #phase: MeshStatus["phase"] = "starting";
  #snapshot: Snapshot | undefined;

  constructor(input: MeshRunInput) {
    this.#input = input;
    const { plan } = input;
    this.#registry = new Registry(plan.paths.registry);
    this.#status = new StatusFile(plan.paths.status, () => this.status(), input.log);
    const onChange = () => this.#status.touch();
    this.#controlPlane = new ControlPlaneRun(plan.controlPlane, onChange);
    this.#members = plan.members.map((member) => {
      const run: MemberRun = new MemberRun(member, { onChange, onReady: (ready) => this.#list(run, ready) });
      return run;
    });
  }

  /** Starts the mesh and keeps it up until the signal aborts, then ends its processes. */
  async run(signal: AbortSignal): Promise<void> {
    const apps = new AbortController();
    const rest = new AbortController();
    const stop = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => stop.resolve(), { once: true });
    if (signal.aborted) stop.resolve();
    const failed = (error: unknown) => stop.reject(error);
    const running: Promise<unknown>[] = [];
    try {
      await this.#prepare();
      running.push(...this.#start({ apps: apps.signal, rest: rest.signal }));
      for (const part of running) part.catch(failed);
      await Promise.race([this.#untilReady(signal), stop.promise]);
      await stop.promise;
    } finally {
      this.#phase = "stopping";
      this.#status.touch();
      apps.abort();
      await Promise.all(this.#members.map((member) => member.appEnded()));
      rest.abort();
      await Promise.allSettled(running);
      for (const close of this.#closers) close();
      await this.#status.close();
    }
  }

  status(): MeshStatus {
    const { plan, runner, published } = this.#input;
    return {
      id: plan.id,
      name: plan.name,
      file: plan.file,
      stateFolder: plan.paths.root,
      runner,
      phase: this.#phase,
      startedAt: this.#startedAt.toISOString(),
      published: published.map(({ address, member, port, target }) => {
        const pages = this.#snapshot === undefined ? [] : pagesOf(this.#snapshot, target.member, port);
        return { address, member, port, pages };
      }),
      members: [this.#controlPlane.status(), ...this.#members.map((member) => member.status())],
    };
  }

  async #prepare(): Promise<void> {
    const { plan, issuer, published, onProgress } = this.#input;
    await makeFolders(plan.folders);
    await Promise.all(plan.files.map(writeAtomically));
    await writeTokens(plan.members, issuer);
    this.#status.touch();
    await Promise.all(plan.networks.map(({ netns }) => makeNamespace(netns)));
    await setUpNetwork(plan.fabric);
    await Promise.all(plan.networks.map(setUpNetwork));
    for (const { server, target, port } of published)
      this.#closers.push(forward(server, { address: target.address, port }));
    onProgress(`network ready: ${plan.networks.length + 1} namespaces named mizzen-${plan.id}-*`);
  }

  /** Everything that runs until a signal aborts; a failure of any of it is a failure of the mesh. */
  #start({ apps, rest }: { readonly apps: AbortSignal; readonly rest: AbortSignal }): Promise<unknown>[] {
    const { plan, issuer, log } = this.#input;
    const services = Promise.withResolvers<void>();
    apps.addEventListener("abort", () => services.resolve(), { once: true });
    const onSnapshot = (snapshot: Snapshot) => {
      this.#snapshot = snapshot;
      this.#status.touch();
    };
    const onFirst = (problems: readonly ObjectProblem[]) => {
      this.#reportProblems(problems);
      services.resolve();
    };
    const root = rootCertificate(plan.paths.ca, apps).then(async (pem) => {
      if (pem !== undefined) await writeRootCertificate(plan.members, pem);
    });
    const startMember = async (member: MemberRun) => {
      await Promise.all([member.capture(), root, services.promise]);
      if (!apps.aborted) await member.run({ apps, proxies: rest });
    };
    const onFailure = (error: unknown) => log.error("tokens are not renewed", { reason: errorText(error) });
    return [
      runServices({ plan, log, onSnapshot, onFirst }, rest),
      this.#controlPlane.run(rest),
      refreshTokens({ members: plan.members, issuer, onFailure }, rest),
      ...this.#members.map(startMember),
    ];
  }

  async #untilReady(signal: AbortSignal): Promise<void> {
    const { startTimeoutMs, onProgress, onReady } = this.#input;
    const deadline = Date.now() + startTimeoutMs;
    const announced = new Set<string>();
    while (!signal.aborted) {
      const { members } = this.status();
      for (const member of members) {
        if (!member.ready || announced.has(memberKey(member))) continue;
        announced.add(memberKey(member));
        onProgress(`${shortestName(member, members)} ready`);
      }
      if (members.every(({ ready }) => ready)) break;
      const problem = await startProblem(members, Date.now() >= deadline);
      if (problem !== undefined) throw new MeshError("START_FAILED", problem);
      await sleep(POLL_MS, signal);
    }
    await this.#untilInSync(signal);
    if (signal.aborted) return;
    this.#phase = "ready";
    await this.#status.write();
    onReady(this.status());
  }

  async #untilInSync(signal: AbortSignal): Promise<void> {
    const { plan, issuer, log } = this.#input;
    const { name, namespace } = CONTROL_PLANE;
    const { address, port } = plan.controlPlane.readiness;
    const wanted = {
      addresses: plan.members.map((member) => member.address),
      proxies: plan.members.filter(({ proxy }) => proxy !== undefined).length,
    };
    const token = await issuer.token(namespace, name);
    const done = await untilInSync({ address, port, token, wanted, timeoutMs: SYNC_TIMEOUT_MS }, signal);
    if (!done && !signal.aborted) log.warn("some proxies do not know all endpoints yet");
  }

  #list({ plan: { key, member, address } }: MemberRun, ready: boolean): void {
    const { log } = this.#input;
    const change = ready ? this.#registry.add(member, address) : this.#registry.remove(member);
    log.info(ready ? "ready" : "not ready", { member: key });
    change.catch((error) => log.error("the registry is not up to date", { member: key, reason: errorText(error) }));
  }

  #reportProblems(problems: readonly ObjectProblem[]): void {
    for (const { origin, object, field, message, severity } of problems) {
      const place = origin === undefined ? "" : `${origin.file}:${origin.line}: `;
      this.#input.onProgress(
        `${severity}: ${place}${[object, field, message].filter((part) => part !== "").join(" ")}`,
      );
    }
  }
}
