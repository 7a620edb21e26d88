/** Which mesh, and which member of it, a person means. */
import { realpath } from "node:fs/promises";
import { MeshError } from "#lib/mesh-error.ts";
import { isAlive } from "#lib/process-id.ts";
import { type LabelSelector, matchesSelector } from "#model/labels/label-selector.ts";
import { ignoring } from "../host/ignoring.ts";
import { memberKey, shortestName } from "../mesh/mesh.ts";
import { statePaths } from "../plan/state-paths.ts";
import { type MemberStatus, type MeshStatus, readStatus } from "../status/status.ts";
import { type Registration, registrations } from "../up/registration.ts";

/** By name, state folder or file; none of them means the only one there is. */
export interface MeshChoice {
  readonly name?: string | undefined;
  readonly stateFolder?: string | undefined;
  /** The mesh file. */
  readonly file?: string | undefined;
}

/** The mesh among those of the machine. */
export async function findMesh(choice: MeshChoice): Promise<Registration> {
  const all = await registrations();
  const found = await matching(all, choice);
  const [only, second] = found;
  if (only !== undefined && second === undefined) return only;
  if (second !== undefined) {
    const list = found.map((mesh) => `"${mesh.name}" (--state ${mesh.stateFolder})`).join(", ");
    throw new MeshError("MESH_AMBIGUOUS", `Cannot tell which mesh is meant: ${list}; choose with --mesh or --state`);
  }
  const wanted = choice.name ?? choice.stateFolder ?? choice.file;
  const others = all.length === 0 ? "" : `; up: ${all.map((mesh) => mesh.name).join(", ")}`;
  throw new MeshError(
    "MESH_NOT_UP",
    `${wanted === undefined ? "No mesh is up" : `Mesh "${wanted}" is not up`}${others}; start one with \`mizzen up FOLDER\``,
  );
}

/** Those of the meshes that a choice allows. */
export async function matching(
  all: readonly Registration[],
  { name, stateFolder, file }: MeshChoice,
): Promise<readonly Registration[]> {
  const folder = stateFolder && ((await ignoring(["ENOENT", "ENOTDIR"], () => realpath(stateFolder))) ?? stateFolder);
  return all.filter(
    (mesh) =>
      (name === undefined || mesh.name === name) &&
      (folder === undefined || mesh.stateFolder === folder) &&
      (file === undefined || mesh.file === file),
  );
}

export interface FoundMesh {
  readonly status: MeshStatus;
  /** False when the runner was killed: what runs goes on, but nobody watches over it. */
  readonly watched: boolean;
}

/** The mesh with what it last said about itself. */
export async function findStatus(choice: MeshChoice): Promise<FoundMesh> {
  const mesh = await findMesh(choice);
  const status = await readStatus(statePaths(mesh.stateFolder).status);
  if (status === undefined) {
    throw new MeshError("MESH_NOT_UP", `Mesh "${mesh.name}" has only begun to start; try again in a moment`);
  }
  return { status, watched: await isAlive(status.runner) };
}

/** The member called so: by its name, by `name.namespace`, or by the workload whose first replica it is. */
export function findMember({ name: mesh, members }: MeshStatus, wanted: string): MemberStatus {
  const named = members.filter((member) => member.name === wanted || memberKey(member) === wanted);
  const found = named.length > 0 ? named : members.filter((member) => isReplicaOf(member, wanted)).slice(0, 1);
  const [only, second] = found;
  if (only !== undefined && second === undefined) return only;
  if (second !== undefined) {
    const list = found.map(memberKey).join(", ");
    throw new MeshError("MEMBER_AMBIGUOUS", `Cannot tell which "${wanted}" is meant: choose one of ${list}`);
  }
  const list = members.map((member) => shortestName(member, members)).join(", ");
  throw new MeshError("MEMBER_UNKNOWN", `Mesh "${mesh}" has no workload "${wanted}": choose one of ${list}`);
}

/** All members that are meant by a name: one member, or all replicas of a workload. */
export function findMembers(status: MeshStatus, wanted: string): readonly MemberStatus[] {
  const first = findMember(status, wanted);
  if (first.name === wanted || memberKey(first) === wanted) return [first];
  return status.members.filter((member) => member.workload === first.workload && member.namespace === first.namespace);
}

/** Members that a selector takes, of one namespace or of all. */
export function membersWith(
  { members }: MeshStatus,
  selector: LabelSelector,
  namespace: string | undefined,
): readonly MemberStatus[] {
  return members.filter(
    (member) =>
      (namespace === undefined || member.namespace === namespace) && matchesSelector(selector, member.labels) === true,
  );
}

function isReplicaOf({ workload, namespace }: MemberStatus, wanted: string): boolean {
  return workload === wanted || memberKey({ name: workload, namespace }) === wanted;
}
