/**
 * What a running mesh can be made to do. Every function makes one change from beginning to end; the caller sees to it that
 * they come one after the other (`requests.ts`).
 */
import { rm } from "node:fs/promises";
import { MeshError } from "#lib/mesh-error.ts";
import type { ApplyRequest, JoinRequest } from "../control/protocol.ts";
import { writeAtomically } from "../host/write-files.ts";
import { CONTROL_PLANE } from "../mesh/check-members.ts";
import { type Member, memberKey, workloadKey } from "../mesh/mesh.ts";
import { assignAddresses } from "../plan/names.ts";
import { type Desired, type MemberPlan, type MeshPlan, planGuest, planMesh } from "../plan/plan.ts";
import type { OpenPublished, WantedPort } from "../ports/published.ts";
import { type Difference, difference } from "./difference.ts";
import type { MemberRun } from "./member-run.ts";
import type { MeshRun } from "./mesh-run.ts";
import { scaledMembers } from "./scale.ts";

/** A running mesh with what is needed to change it. */
export interface Changeable {
  readonly run: MeshRun;
  readonly jwtRule: string;
  /** As last applied, and changed since by `scale`. */
  desired: Desired;
  /** One member of each workload that ever was, to make more of: also of one that was scaled to nothing. */
  readonly templates: Map<string, Member>;
  /** Opens ports on the machine, outside of the fabric. All of them or none. */
  readonly openPorts: (wanted: readonly WantedPort[], freePorts: boolean) => Promise<readonly OpenPublished[]>;
}

const CONTROL_PLANE_KEY = memberKey(CONTROL_PLANE);
/** How long a restarted or scaled workload may take before the command gives up on waiting; the mesh goes on trying. */
const READY_TIMEOUT_MS = 120_000;
/** Time for other proxies to learn that a replica is going. */
const WITHDRAW_MS = 1000;

/** Makes the mesh what is desired; answers with what that took. */
export async function applyDesired(mesh: Changeable, request: ApplyRequest): Promise<readonly string[]> {
  const { desired, freePorts, timeoutMs } = request;
  const { run } = mesh;
  const next = planNext(mesh, desired);
  if (next.range.cidr !== run.plan.range.cidr) {
    throw new MeshError(
      "NETWORK_FIXED",
      `Cannot change spec.network.cidr from ${run.plan.range.cidr} to ${next.range.cidr} while the mesh is up: run \`mizzen down\` first`,
    );
  }
  const differs = difference(run.plan, next);
  const members = next.members.map(({ member }) => member);
  const opened = await mesh.openPorts(run.published.missing(members), freePorts);
  const changes = await carryOut({ mesh, next, differs });
  const closed = run.published.closeOthers(members);
  for (const port of opened)
    run.published.add(port, next.members.find(({ key }) => key === port.port.member)?.address ?? "");
  mesh.desired = desired;
  run.exitWhenDone = desired.mesh.exitWhenDone;
  for (const member of members) mesh.templates.set(workloadKey(member), member);
  const touched = new Set([...differs.added, ...differs.replaced, ...differs.appChanged].map(({ key }) => key));
  const stopped = run.members.all().filter(({ state, plan }) => state === "stopped" && !touched.has(plan.key));
  for (const { plan } of stopped) touched.add(plan.key);
  const started = await startAll(stopped);
  const istiod = run.controlPlane.running ? [] : [`${CONTROL_PLANE.name} started`];
  run.controlPlane.start();
  if (touched.size > 0 || differs.controlPlane.process || istiod.length > 0) {
    await run.untilReady(new Set([...touched, CONTROL_PLANE_KEY]), timeoutMs);
  }
  if (touched.size > 0 || differs.config) run.sayHints();
  return [
    ...changes,
    ...started,
    ...istiod,
    ...closed.map(({ address }) => `${address} closed`),
    ...opened.map(({ port }) => `${port.address} opened`),
  ];
}

function planNext({ run, jwtRule }: Changeable, desired: Desired): MeshPlan {
  const guests = run.members.all().filter(({ plan }) => !run.plan.members.some(({ key }) => key === plan.key));
  const clash = desired.mesh.members.find((member) => guests.some(({ plan }) => plan.key === memberKey(member)));
  if (clash !== undefined) throw nameTaken(clash);
  return planMesh({ ...desired, jwtRule, addresses: addressesOf(run) });
}

function addressesOf(run: MeshRun): ReadonlyMap<string, string> {
  return new Map(run.members.all().map(({ plan }) => [plan.key, plan.address]));
}

interface Step {
  readonly mesh: Changeable;
  readonly next: MeshPlan;
  readonly differs: Difference;
}

/** From the control plane to the members, so that these find everything they need. */
async function carryOut({ mesh, next, differs }: Step): Promise<string[]> {
  const { run } = mesh;
  const { removed, added, replaced, appChanged, controlPlane, config } = differs;
  const changes: string[] = [];
  run.plan = next;
  if (controlPlane.files) {
    await Promise.all(next.controlPlane.files.map(writeAtomically));
    changes.push("mesh config changed");
  }
  if (config) run.services.reconfigure(next);
  if (controlPlane.process) {
    await run.controlPlane.replace(next.controlPlane);
    changes.push(`${CONTROL_PLANE.name} restarted`);
  }
  await Promise.all(removed.map(({ key }) => run.members.remove(key)));
  if (differs.sharedAgent && next.sharedAgent !== undefined) await run.sharedAgent.start(next.sharedAgent);
  await run.members.add(added);
  await eachWorkload(replaced, (plan) => replaceMember(run, plan));
  await eachWorkload(appChanged, async (plan) => {
    const member = run.members.get(plan.key);
    await withdraw(run, member);
    await member?.replaceApp(plan);
  });
  const isShared = run.members.all().some(({ plan }) => plan.shared !== undefined);
  if (next.sharedAgent === undefined && !isShared) await run.sharedAgent.stop();
  return [
    ...changes,
    ...removed.map(({ key }) => `${shortName(key)} removed`),
    ...added.map(({ key }) => `${shortName(key)} added`),
    ...replaced.map(({ key }) => `${shortName(key)} made anew`),
    ...appChanged.map(({ key }) => `${shortName(key)} restarted`),
  ];
}

async function replaceMember(run: MeshRun, plan: MemberPlan): Promise<void> {
  await withdraw(run, run.members.get(plan.key));
  await run.members.remove(plan.key);
  await run.members.add([plan]);
}

/** Replicas of one workload in turn, each when the one before is ready again; workloads beside each other. */
async function eachWorkload(plans: readonly MemberPlan[], change: (plan: MemberPlan) => Promise<void>): Promise<void> {
  const groups = Map.groupBy(plans, ({ member }) => workloadKey(member));
  await Promise.all(
    [...groups.values()].map(async (replicas) => {
      for (const plan of replicas) await change(plan);
    }),
  );
}

/** Takes a replica out of the traffic before it ends, when there is another one to take it. */
async function withdraw(run: MeshRun, member: MemberRun | undefined): Promise<void> {
  if (member?.ready !== true) return;
  const { key, member: own } = member.plan;
  const others = run.members
    .all()
    .filter((other) => other.plan.key !== key && workloadKey(other.plan.member) === workloadKey(own));
  if (!others.some(({ ready }) => ready)) return;
  await run.registry.remove(own);
  await run.untilInSync(WITHDRAW_MS, { leaving: key });
}

/** Starts, stops or restarts a workload, a member or the control plane. */
export async function changeWorkload(
  mesh: Changeable,
  kind: "restart" | "stop" | "start",
  name: string,
): Promise<readonly string[]> {
  const { run } = mesh;
  if (name === CONTROL_PLANE.name || name === CONTROL_PLANE_KEY) return changeControlPlane(run, kind);
  const members = findRuns(run, name);
  if (kind === "stop") {
    const running = members.filter(({ state }) => state === "running");
    await Promise.all(running.map((member) => member.stop()));
    return running.map(({ plan }) => `${shortName(plan.key)} stopped`);
  }
  if (kind === "start") {
    const idle = members.filter(({ state }) => state !== "running");
    const changes = await startAll(idle);
    await run.untilReady(new Set(idle.map(({ plan }) => plan.key)), READY_TIMEOUT_MS);
    return changes;
  }
  for (const member of members) {
    await withdraw(run, member);
    await member.stop();
    member.start();
    await run.untilReady(new Set([member.plan.key]), READY_TIMEOUT_MS);
  }
  return members.map(({ plan }) => `${shortName(plan.key)} restarted`);
}

async function changeControlPlane(run: MeshRun, kind: "restart" | "stop" | "start"): Promise<readonly string[]> {
  const { running } = run.controlPlane;
  if (kind === (running ? "start" : "stop")) return [];
  if (running) await run.controlPlane.stop();
  if (kind !== "stop") {
    run.controlPlane.start();
    await run.untilReady(new Set([CONTROL_PLANE_KEY]), READY_TIMEOUT_MS);
  }
  return [`${CONTROL_PLANE.name} ${kind === "stop" ? "stopped" : `${kind}ed`}`];
}

async function startAll(members: readonly MemberRun[]): Promise<string[]> {
  await Promise.all(
    members.map(async (member) => {
      await member.stop();
      member.start();
    }),
  );
  return members.map(({ plan }) => `${shortName(plan.key)} started`);
}

/** Gives a workload this many replicas; those that are there stay. */
export async function scaleWorkload(mesh: Changeable, name: string, replicas: number): Promise<readonly string[]> {
  const { desired, templates } = mesh;
  const template = findTemplate(mesh, name);
  const members = scaledMembers(desired.mesh.members, template, replicas);
  templates.set(workloadKey(template), template);
  const next = { ...desired, mesh: { ...desired.mesh, members } };
  return applyDesired(mesh, { kind: "apply", desired: next, freePorts: false, timeoutMs: READY_TIMEOUT_MS });
}

/** Adds a member that runs things of its own, until it is removed. Its proxy is not ready yet. */
export async function addMember({ run, desired }: Changeable, request: JoinRequest): Promise<void> {
  const key = memberKey(request.member);
  if (run.members.get(key) !== undefined || key === CONTROL_PLANE_KEY) throw nameTaken(request.member);
  const address = assignAddresses([key], addressesOf(run), run.plan.range).get(key) ?? "";
  await run.members.add([planGuest(desired, request, address)]);
}

/** Removes a member that was added so; that it is gone already is no error. */
export async function removeMember({ run }: Changeable, key: string): Promise<void> {
  if (run.plan.members.some((plan) => plan.key === key)) {
    throw new MeshError(
      "MEMBER_OF_FILE",
      `"${key}" is a workload of mesh.yaml: remove it there, or use \`mizzen stop\``,
    );
  }
  const logs = run.members.get(key)?.status().logs;
  await run.members.remove(key);
  if (logs?.proxy !== undefined) await rm(logs.proxy, { force: true });
}

/** All replicas of a workload, or one member; each by name or by `name.namespace`. */
function findRuns(run: MeshRun, wanted: string): readonly MemberRun[] {
  const all = run.members.all();
  const replicas = all.filter(({ plan: { member } }) => [member.workload, workloadKey(member)].includes(wanted));
  const found =
    replicas.length > 0 ? replicas : all.filter(({ plan }) => [plan.member.name, plan.key].includes(wanted));
  const keys = new Set(found.map(({ plan }) => workloadKey(plan.member)));
  if (keys.size > 1) {
    const list = [...keys].join(", ");
    throw new MeshError("MEMBER_AMBIGUOUS", `Cannot tell which "${wanted}" is meant: choose one of ${list}`);
  }
  if (found.length > 0) return found;
  throw unknownWorkload(run, wanted);
}

function findTemplate({ run, templates }: Changeable, wanted: string): Member {
  const found = [...templates].filter(([key, { workload }]) => key === wanted || workload === wanted);
  const [first, second] = found;
  if (second !== undefined) {
    const keys = found.map(([key]) => key).join(", ");
    throw new MeshError("MEMBER_AMBIGUOUS", `Cannot tell which "${wanted}" is meant: choose one of ${keys}`);
  }
  if (first !== undefined) return first[1];
  throw unknownWorkload(run, wanted);
}

function unknownWorkload(run: MeshRun, wanted: string): MeshError {
  const names = new Set(run.members.all().map(({ plan }) => plan.member.workload));
  return new MeshError(
    "MEMBER_UNKNOWN",
    `Mesh "${run.plan.name}" has no workload "${wanted}": choose one of ${[CONTROL_PLANE.name, ...names].join(", ")}`,
  );
}

function nameTaken(member: Pick<Member, "name" | "namespace">): MeshError {
  return new MeshError(
    "MEMBER_EXISTS",
    `Cannot add "${member.name}" in namespace "${member.namespace}": the mesh has a member of this name; choose another`,
  );
}

function shortName(key: string): string {
  return key.slice(0, key.indexOf("."));
}
