/** Carries out what arrives at the control socket: changes one after the other, everything else at once. */
import { MeshError } from "#lib/mesh-error.ts";
import type { ChangeSummary, ControlRequest, JoinRequest, MeshDetails, MeshEnd } from "../control/protocol.ts";
import type { ControlSession } from "../control/serve-control.ts";
import { memberKey } from "../mesh/mesh.ts";
import { FABRIC } from "../plan/names.ts";
import { askProxy, type ProxyDetails } from "../status/proxy-details.ts";
import type { MemberStatus } from "../status/status.ts";
import { addMember, applyDesired, type Changeable, changeWorkload, removeMember, scaleWorkload } from "./changes.ts";
import { configure } from "./configure.ts";

export class Requests {
  readonly #mesh: Changeable;
  /** Resolves when the mesh has ended. */
  readonly #end: Promise<MeshEnd>;
  #last: Promise<unknown> = Promise.resolve();

  constructor(mesh: Changeable, end: Promise<MeshEnd>) {
    this.#mesh = mesh;
    this.#end = end;
  }

  /** Resolves to the answer of the request. */
  async handle(request: ControlRequest, session: ControlSession): Promise<unknown> {
    const mesh = this.#mesh;
    switch (request.kind) {
      case "status":
        return mesh.run.status();
      case "details":
        return this.#details();
      case "watch":
        return this.#watch(session);
      case "apply":
        return this.#change(session, () => applyDesired(mesh, request));
      case "configure":
        return this.#change(session, () => configure(mesh.run, request));
      case "restart":
      case "stop":
      case "start":
        return this.#change(session, () => changeWorkload(mesh, request.kind, request.workload));
      case "scale":
        return this.#change(session, () => scaleWorkload(mesh, request.workload, request.replicas));
      case "join":
        return this.#join(request, session);
      case "leave":
        await this.#inTurn(() => removeMember(mesh, request.member));
        return null;
    }
  }

  /** Resolves when no change is under way any more. */
  async settled(): Promise<void> {
    await this.#last;
  }

  async #details(): Promise<MeshDetails> {
    const { run } = this.#mesh;
    const proxied = run.members.all().filter(({ plan, state }) => plan.proxy !== undefined && state === "running");
    const proxies: Record<string, ProxyDetails> = {};
    await Promise.all(
      proxied.map(async ({ plan }) => {
        const told = await askProxy(plan.address, FABRIC.prober);
        if (told !== undefined) proxies[plan.key] = told;
      }),
    );
    return { status: run.status(), proxies };
  }

  async #watch(session: ControlSession): Promise<MeshEnd> {
    using _ = this.#mesh.run.events.listen(session.progress);
    session.progress("");
    const gone = new Promise<never>((_resolve, reject) => {
      session.gone.addEventListener("abort", () => reject(new MeshError("WATCHER_GONE", "nobody listens any more")));
    });
    return await Promise.race([this.#end, gone]);
  }

  async #change(session: ControlSession, change: () => Promise<readonly string[]>): Promise<ChangeSummary> {
    return this.#inTurn(async () => {
      using _ = this.#mesh.run.events.listen(session.progress);
      const changes = await change();
      for (const line of changes) this.#mesh.run.events.add(line);
      await this.#mesh.run.writeStatus();
      return { changes, status: this.#mesh.run.status() };
    });
  }

  async #join(request: JoinRequest, { gone }: ControlSession): Promise<MemberStatus> {
    const mesh = this.#mesh;
    const key = memberKey(request.member);
    const leave = () => this.#inTurn(() => removeMember(mesh, key)).catch(() => undefined);
    await this.#inTurn(() => addMember(mesh, request));
    gone.addEventListener("abort", () => void leave(), { once: true });
    try {
      // Others need not wait for this.
      await mesh.run.untilProxyReady(key, request.timeoutMs);
    } catch (error) {
      await leave();
      throw error;
    }
    const member = mesh.run.members.get(key);
    if (gone.aborted || member === undefined) throw new MeshError("WATCHER_GONE", "whoever joined is gone");
    return member.status();
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const { run } = this.#mesh;
    const done = this.#last.then(async () => {
      await run.started.promise;
      if (run.ending.signal.aborted) throw new MeshError("MESH_ENDING", "the mesh is ending");
      return await work();
    });
    // Whoever asked hears of a failure; the next change is not held up by it.
    this.#last = done.catch(() => undefined);
    return done;
  }
}
