/**
 * The whole mesh as a value: every address, name, file, command and variable. Making it touches nothing; the runner
 * (`run/`) carries it out.
 */
import { join, relative } from "node:path";
import { type AddressRange, addressRange } from "../mesh/address-range.ts";
import { CONTROL_PLANE } from "../mesh/check-members.ts";
import { type App, type Member, type Mesh, memberKey } from "../mesh/mesh.ts";
import { type GroupLayout, type GroupPlan, joinGroups, planGroups } from "./control-groups.ts";
import { type ControlPlanePlan, controlPlanePlan } from "./control-plane.ts";
import type { Account, Place } from "./enter.ts";
import { etcFiles, type FilePlan, type FolderPlan } from "./files.ts";
import { assignAddresses, fabricNamespace, memberNamespace } from "./names.ts";
import { cableLines, fabricNetwork, memberNetwork, type NetworkPlan } from "./network.ts";
import { baseEnv, type ProcessPlan, type Programs, plainShell, processPlan, type Shell } from "./process.ts";
import { type ProxyPlan, proxyPlan } from "./proxy.ts";
import { type SharedAgentPlan, type SharedMemberPlan, sharedAgentPlan, sharedMemberPlan } from "./shared-agent.ts";
import { type StatePaths, statePaths } from "./state-paths.ts";
import { ownAccount, type UserRange } from "./users.ts";

/** What a person wants, with all that was found out about the machine for it. */
export interface Desired {
  readonly mesh: Mesh;
  readonly id: string;
  readonly stateFolder: string;
  readonly programs: Programs;
  /** For the control plane, and for the apps that name no user; undefined where there is only one account. */
  readonly users: UserRange | undefined;
  /** By the name that an app gives as its user. */
  readonly accounts: Readonly<Record<string, Account>>;
  /** Where a working folder is to be used from, when its own place cannot be read. */
  readonly workingCopies: Readonly<Record<string, string>>;
  readonly privateConfig: boolean;
  /** Where limits are set; undefined when no app has any. */
  readonly groups: GroupLayout | undefined;
}

export interface PlanInput extends Desired {
  readonly jwtRule: string;
  /** Addresses that members have already, by `name.namespace`. */
  readonly addresses: ReadonlyMap<string, string>;
}

export interface MeshPlan {
  readonly id: string;
  readonly name: string;
  readonly file: string;
  readonly lines: Mesh["lines"];
  readonly config: readonly string[];
  readonly onUnreadablePolicy: Mesh["onUnreadablePolicy"];
  readonly paths: StatePaths;
  readonly range: AddressRange;
  readonly fabric: NetworkPlan;
  /** Of the mesh as a whole. */
  readonly folders: readonly FolderPlan[];
  readonly controlPlane: ControlPlanePlan & PodPlan;
  /** Undefined when each proxy has an agent of its own. */
  readonly sharedAgent: SharedAgentPlan | undefined;
  readonly members: readonly MemberPlan[];
}

/** What a pod needs before anything runs in it. */
export interface PodPlan {
  /** `name.namespace` */
  readonly key: string;
  readonly address: string;
  readonly range: AddressRange;
  readonly place: Place;
  /** Its end of the cable, and the `ip` lines for the fabric's. */
  readonly network: NetworkPlan;
  readonly cable: readonly string[];
  readonly folders: readonly FolderPlan[];
  readonly files: readonly FilePlan[];
  readonly shell: Shell;
}

export interface MemberPlan extends PodPlan {
  readonly member: Member;
  readonly proxy: ProxyPlan | undefined;
  /** What the shared agent is told; undefined without one, or without a proxy. */
  readonly shared: SharedMemberPlan | undefined;
  readonly app: AppPlan | undefined;
}

export interface AppPlan {
  readonly process: ProcessPlan;
  /** Control groups that the process enters. */
  readonly groups: readonly GroupPlan[];
  readonly app: App;
}

/** Plans a mesh. */
export function planMesh(input: PlanInput): MeshPlan {
  const { mesh, id } = input;
  const paths = statePaths(input.stateFolder);
  const range = addressRange(mesh.cidr);
  const addresses = assignAddresses(mesh.members.map(memberKey), input.addresses, range);
  return {
    id,
    name: mesh.name,
    file: mesh.file,
    lines: mesh.lines,
    config: mesh.config,
    onUnreadablePolicy: mesh.onUnreadablePolicy,
    paths,
    range,
    fabric: fabricNetwork(fabricNamespace(id), range),
    folders: [
      { path: paths.root, mode: 0o755, owner: 0 },
      ...[paths.members, paths.logs, paths.issuer].map((path) => ({ path, mode: 0o700, owner: 0 })),
      // Copies may come later, and places show only what was there when they were made.
      { path: paths.runtime, mode: 0o711, owner: 0 },
    ],
    controlPlane: planControlPlane(input, paths),
    sharedAgent: mesh.agents === "shared" ? sharedAgentPlan({ ...input, paths }) : undefined,
    members: mesh.members.map((member) => planMember(input, member, addresses.get(memberKey(member)) ?? "")),
  };
}

function planControlPlane(input: PlanInput, paths: StatePaths): MeshPlan["controlPlane"] {
  const { meshConfig, config, cidr, onUnreadablePolicy } = input.mesh;
  const range = addressRange(cidr);
  const account = ownAccount(input.users, range, range.controlPlane);
  const visible = [paths.ca, paths.controlPlane, paths.registry, paths.applied];
  const pod = podPlan(input, CONTROL_PLANE, { address: range.controlPlane, visible });
  const plan = controlPlanePlan({
    ...input,
    paths,
    place: pod.place,
    account,
    address: pod.address,
    log: logFile(paths, pod.key),
    meshConfig,
    config,
    onUnreadablePolicy,
  });
  return { ...pod, ...plan, folders: [...pod.folders, ...plan.folders], files: [...pod.files, ...plan.files] };
}

/** Plans a member at an address. */
function planMember(input: Desired, member: Member, address: string): MemberPlan {
  const { mesh, programs, stateFolder } = input;
  const paths = statePaths(stateFolder);
  const pod = podPlan(input, member, { address });
  const { key, place } = pod;
  const proxyInput = {
    member,
    address,
    range: pod.range,
    appPlace: place,
    folder: join(paths.members, key, "proxy"),
    log: logFile(paths, `${key}.proxy`),
    programs,
    meshConfig: mesh.meshConfig,
  };
  const proxy = member.proxy === "none" ? undefined : proxyPlan(proxyInput);
  const app = member.app && appPlan(input, { member, app: member.app, address, place, log: logFile(paths, key) });
  return {
    ...pod,
    member,
    proxy,
    shared: proxy && mesh.agents === "shared" ? sharedMemberPlan(key, proxyInput) : undefined,
    app,
    folders: [...pod.folders, ...(proxy?.folders ?? [])],
    files: [...pod.files, ...(proxy?.files ?? [])],
    shell: app === undefined ? pod.shell : shellOf(place, app.process),
  };
}

/** Somebody who joins a running mesh with a process of its own. */
export interface Guest {
  readonly member: Member;
  /** Whom its commands run as. */
  readonly account: Account;
  readonly cwd: string;
}

/** Plans a member in which commands are run from outside. */
export function planGuest(input: Desired, { member, account, cwd }: Guest, address: string): MemberPlan {
  const plan = planMember(input, { ...member, app: undefined }, address);
  const env = { ...baseEnv(account, input.programs), ...podVariables(member, address) };
  return { ...plan, shell: { place: plan.place, account, env, cwd } };
}

function podVariables({ name, namespace, serviceAccount }: Member, address: string): Record<string, string> {
  return { POD_NAME: name, POD_NAMESPACE: namespace, POD_IP: address, SERVICE_ACCOUNT: serviceAccount };
}

/** `visible` are parts of the state folder that its programs see. */
function podPlan(
  { id, stateFolder, programs, mesh, users }: Desired,
  pod: { readonly name: string; readonly namespace: string },
  { address, visible = [] }: { readonly address: string; readonly visible?: readonly string[] },
): PodPlan {
  const { name, namespace } = pod;
  const key = memberKey(pod);
  const range = addressRange(mesh.cidr);
  const paths = statePaths(stateFolder);
  const folder = join(paths.members, key);
  const etc = join(folder, "etc");
  const place: Place = {
    netns: memberNamespace(id, pod),
    hostname: name,
    etc,
    namespaces: join(folder, "namespaces"),
    state: paths.root,
    visible: [paths.runtime, ...visible].map((path) => relative(paths.root, path)),
    owner: ownAccount(users, range, address).uid,
  };
  const cable = { key, netns: place.netns, address, range };
  return {
    key,
    address,
    range,
    place,
    network: memberNetwork(cable),
    cable: cableLines(cable),
    folders: [
      { path: folder, mode: 0o711, owner: 0 },
      { path: etc, mode: 0o755, owner: 0 },
    ],
    files: etcFiles({ folder: etc, name, namespace, address, nameServer: range.gateway }),
    shell: plainShell(place, programs),
  };
}

function logFile(paths: StatePaths, key: string): string {
  return join(paths.logs, `${key}.log`);
}

interface AppInput {
  readonly member: Member;
  readonly app: App;
  readonly address: string;
  readonly place: Place;
  readonly log: string;
}

function appPlan(input: Desired, { member, app, address, place, log }: AppInput): AppPlan {
  const { id, programs, workingCopies, groups: layout } = input;
  const account = appAccount(input, app, address);
  const plain = processPlan({
    place,
    account,
    programs,
    cwd: workingCopies[app.workingDir] ?? app.workingDir,
    log,
    env: { ...podVariables(member, address), ...app.env },
    command: app.command,
  });
  const groups = layout === undefined ? [] : planGroups({ layout, id, key: memberKey(member), limits: app.limits });
  return { process: { ...plain, argv: joinGroups(groups, plain.argv) }, groups, app };
}

/** The account that the app names, or one of its own. */
function appAccount({ users, accounts, mesh }: Desired, app: App, address: string): Account {
  if (app.user === undefined) return ownAccount(users, addressRange(mesh.cidr), address);
  const account = accounts[app.user];
  if (account === undefined) throw new Error(`no account was looked up for user "${app.user}"`);
  return account;
}

function shellOf(place: Place, { account, env, cwd }: ProcessPlan): Shell {
  return { place, account, env, cwd };
}
