/** What has become of the jobs of a mesh. */
import { isJob, type Member, workloadKey } from "../mesh/mesh.ts";
import type { MemberStatus } from "./status.ts";

export interface JobMember {
  readonly member: Pick<Member, "workload" | "namespace" | "after" | "app">;
  readonly status: Pick<MemberStatus, "state" | "app"> & Partial<Pick<MemberStatus, "logs">>;
}

/**
 * The exit code of a mesh that ends with its jobs: that of the first one that failed, else 0. Undefined as long as one of
 * them runs, or when there are none. A job that waits for a failed one will never run.
 */
export function jobsExitCode(members: readonly JobMember[]): number | undefined {
  const jobs = members.filter(({ member }) => isJob(member));
  if (jobs.length === 0) return undefined;
  const blocked = blockedWorkloads(members);
  const going = jobs.filter(
    ({ member, status }) => status.state !== "done" && status.state !== "failed" && !blocked.has(workloadKey(member)),
  );
  if (going.length > 0) return undefined;
  return jobs.find(({ status }) => status.state === "failed")?.status.app?.exitCode ?? 0;
}

/** Workloads that failed, or that wait for such, directly or by way of others. */
export function blockedWorkloads(members: readonly JobMember[]): ReadonlySet<string> {
  const blocked = new Set(
    members.filter(({ status }) => status.state === "failed").map(({ member }) => workloadKey(member)),
  );
  const waiting = members.filter(({ status }) => status.state === "running" && status.app?.state === "waiting");
  for (let before = -1; before !== blocked.size; ) {
    before = blocked.size;
    for (const { member } of waiting) {
      if (member.after.some((key) => blocked.has(key))) blocked.add(workloadKey(member));
    }
  }
  return blocked;
}
