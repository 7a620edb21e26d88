/** More or fewer replicas of a workload. */
import { MeshError } from "#lib/mesh-error.ts";
import { type Member, memberKey, workloadKey } from "../mesh/mesh.ts";

const MAX_REPLICAS = 100;

/** The members of the mesh with this many replicas of the template's workload. Those that are there keep their names. */
export function scaledMembers(members: readonly Member[], template: Member, replicas: number): readonly Member[] {
  const { workload, publish } = template;
  if (!Number.isInteger(replicas) || replicas < 0 || replicas > MAX_REPLICAS) {
    throw new MeshError("SCALE_INVALID", `Cannot scale "${workload}" to ${replicas}: choose 0 to ${MAX_REPLICAS}`);
  }
  if (replicas > 1 && publish.length > 0) {
    throw new MeshError(
      "SCALE_INVALID",
      `Cannot scale "${workload}" to ${replicas}: it publishes a host port, which leads to one process`,
    );
  }
  const own = members.filter((member) => workloadKey(member) === workloadKey(template));
  const kept = new Set(own.slice(0, replicas).map(memberKey));
  const taken = new Set(members.map(memberKey));
  const more: Member[] = [];
  // A workload that had one replica is called like it: that counts as the first.
  for (let number = own.some(({ name }) => name === workload) ? 2 : 1; kept.size + more.length < replicas; number++) {
    const member = { ...template, name: replicas === 1 ? workload : `${workload}-${number}` };
    if (!taken.has(memberKey(member))) more.push(member);
  }
  return [...members.filter((member) => !own.includes(member) || kept.has(memberKey(member))), ...more];
}
