/**
 * The whole mesh as a value: every address, name, file, command and variable. Making it touches nothing; the runner
 * (`run/`) carries it out.
 */
import { dirname, join } from "node:path";
import { CONTROL_PLANE } from "../mesh/check-members.ts";
import { type App, type Member, type Mesh, memberKey, type Probe } from "../mesh/mesh.ts";
import { type ControlPlanePlan, controlPlanePlan } from "./control-plane.ts";
import type { Account, Place } from "./enter.ts";
import { etcFiles, type FilePlan, type FolderPlan } from "./files.ts";
import { FABRIC, fabricNamespace, memberAddress, memberNamespace } from "./names.ts";
import { type Cable, fabricNetwork, memberNetwork, type NetworkPlan } from "./network.ts";
import { type ProcessPlan, type Programs, plainShell, processPlan, type Shell } from "./process.ts";
import { type ProxyPlan, proxyPlan } from "./proxy.ts";
import { type StatePaths, statePaths } from "./state-paths.ts";

export interface PlanInput {
  readonly mesh: Mesh;
  readonly id: string;
  readonly stateFolder: string;
  readonly programs: Programs;
  /** By the name that an app gives as its user. */
  readonly accounts: Readonly<Record<string, Account>>;
  /** Where a working folder is to be used from, when its own place cannot be read. */
  readonly workingCopies: Readonly<Record<string, string>>;
  readonly privateConfig: boolean;
  readonly jwtRule: string;
}

export interface MeshPlan {
  readonly id: string;
  readonly name: string;
  readonly file: string;
  readonly config: readonly string[];
  readonly paths: StatePaths;
  readonly fabric: NetworkPlan;
  /** Of the control plane and of every member. */
  readonly networks: readonly NetworkPlan[];
  readonly folders: readonly FolderPlan[];
  readonly files: readonly FilePlan[];
  readonly controlPlane: ControlPlanePlan & { readonly address: string; readonly shell: Shell };
  readonly members: readonly MemberPlan[];
}

export interface MemberPlan {
  readonly key: string;
  readonly member: Member;
  readonly address: string;
  readonly place: Place;
  readonly proxy: ProxyPlan | undefined;
  readonly app: AppPlan | undefined;
  readonly shell: Shell;
}

export interface AppPlan {
  readonly process: ProcessPlan;
  readonly readiness: Probe | undefined;
}

/** Plans a mesh. */
export function planMesh(input: PlanInput): MeshPlan {
  const { mesh, id } = input;
  const paths = statePaths(input.stateFolder);
  const members = mesh.members.map((member, i) => memberPlan(input, member, memberAddress(i)));
  const istiod = spot(input, CONTROL_PLANE, FABRIC.controlPlane);
  const controlPlane = controlPlanePlan({
    ...input,
    paths,
    place: istiod.place,
    log: logFile(paths, istiod.key),
    meshConfig: mesh.meshConfig,
    config: mesh.config,
  });
  const spots = [istiod, ...members.map(({ member, address }) => spot(input, member, address))];
  return {
    id,
    name: mesh.name,
    file: mesh.file,
    config: mesh.config,
    paths,
    fabric: fabricNetwork(fabricNamespace(id), spots.map(cableOf)),
    networks: spots.map(cableOf).map(memberNetwork),
    folders: [
      { path: paths.root, mode: 0o755, owner: 0 },
      ...[paths.members, paths.logs].map((path) => ({ path, mode: 0o711, owner: 0 })),
      { path: paths.issuer, mode: 0o700, owner: 0 },
      ...spots.flatMap(({ place }) => [
        { path: dirname(place.etc), mode: 0o711, owner: 0 },
        { path: place.etc, mode: 0o755, owner: 0 },
      ]),
      ...controlPlane.folders,
      ...members.flatMap(({ proxy }) => proxy?.folders ?? []),
    ],
    files: [
      ...spots.flatMap((place) => etcFiles({ ...place, folder: place.place.etc })),
      ...controlPlane.files,
      ...members.flatMap(({ proxy }) => proxy?.files ?? []),
    ],
    controlPlane: { ...controlPlane, address: istiod.address, shell: plainShell(istiod.place, input.programs) },
    members,
  };
}

/** A pod's place in the fabric. */
interface Spot {
  readonly key: string;
  readonly name: string;
  readonly namespace: string;
  readonly address: string;
  readonly place: Place;
}

function spot(
  { id, stateFolder }: PlanInput,
  pod: { readonly name: string; readonly namespace: string },
  address: string,
): Spot {
  const { name, namespace } = pod;
  const key = memberKey(pod);
  const etc = join(statePaths(stateFolder).members, key, "etc");
  return { key, name, namespace, address, place: { netns: memberNamespace(id, pod), hostname: name, etc } };
}

function cableOf({ key, address, place }: Spot): Cable {
  return { key, netns: place.netns, address };
}

function logFile(paths: StatePaths, key: string): string {
  return join(paths.logs, `${key}.log`);
}

function memberPlan(input: PlanInput, member: Member, address: string): MemberPlan {
  const { mesh, programs, stateFolder } = input;
  const paths = statePaths(stateFolder);
  const { key, place } = spot(input, member, address);
  const proxy =
    member.proxy === "none"
      ? undefined
      : proxyPlan({
          member,
          address,
          place,
          folder: join(paths.members, key, "proxy"),
          log: logFile(paths, `${key}.proxy`),
          programs,
          meshConfig: mesh.meshConfig,
        });
  const app = member.app && appPlan(input, { member, app: member.app, address, place, log: logFile(paths, key) });
  const shell = app === undefined ? plainShell(place, programs) : shellOf(place, app.process);
  return { key, member, address, place, proxy, app, shell };
}

interface AppInput {
  readonly member: Member;
  readonly app: App;
  readonly address: string;
  readonly place: Place;
  readonly log: string;
}

function appPlan(
  { programs, accounts, workingCopies }: PlanInput,
  { member, app, address, place, log }: AppInput,
): AppPlan {
  const account = accounts[app.user];
  if (account === undefined) throw new Error(`no account was looked up for user "${app.user}"`);
  const process = processPlan({
    place,
    account,
    programs,
    cwd: workingCopies[app.workingDir] ?? app.workingDir,
    log,
    env: {
      POD_NAME: member.name,
      POD_NAMESPACE: member.namespace,
      POD_IP: address,
      SERVICE_ACCOUNT: member.serviceAccount,
      ...app.env,
    },
    command: app.command,
  });
  return { process, readiness: app.readiness };
}

function shellOf(place: Place, { account, env, cwd }: ProcessPlan): Shell {
  return { place, account, env, cwd };
}
