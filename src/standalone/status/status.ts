/** What a running mesh says about itself, in a file that `ps`, `exec`, `logs` and `down` read. */
import { readFile } from "node:fs/promises";
import { MeshError } from "#lib/mesh-error.ts";
import type { ProcessId } from "#lib/process-id.ts";
import { ignoring } from "../host/ignoring.ts";
import type { Port } from "../mesh/mesh.ts";
import type { Shell } from "../plan/process.ts";
import type { UnitStatus } from "../supervise/unit.ts";
import type { Page } from "./pages.ts";

export interface MeshStatus {
  readonly id: string;
  readonly name: string;
  readonly file: string;
  readonly stateFolder: string;
  readonly runner: ProcessId;
  readonly phase: "starting" | "ready" | "stopping";
  readonly startedAt: string;
  /** Whether workloads reach what the machine reaches. */
  readonly egress: boolean;
  /** What a person who looks at the mesh should know. */
  readonly notes: readonly string[];
  readonly published: readonly PublishedStatus[];
  readonly members: readonly MemberStatus[];
}

export interface PublishedPort {
  /** Where it is reached on this machine, `127.0.0.1:8080`. */
  readonly address: string;
  /** `name.namespace` */
  readonly member: string;
  readonly port: number;
  /** As mesh.yaml has it. */
  readonly entry: string;
}

export interface PublishedStatus extends PublishedPort {
  /** What the routes of the mesh serve there. */
  readonly pages: readonly Page[];
}

/** `running` may or may not be ready; `done` and `failed` are jobs that have ended. */
export type MemberState = "running" | "stopped" | "done" | "failed";

export interface MemberStatus {
  readonly name: string;
  /** Name without the number of the replica. */
  readonly workload: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly kind: "workload" | "gateway" | "control-plane";
  readonly address: string;
  readonly ports: readonly Port[];
  /** Meant to end by itself. */
  readonly job: boolean;
  readonly state: MemberState;
  readonly ready: boolean;
  /** Why it is not ready; empty when it is. */
  readonly reason: string;
  readonly app: UnitStatus | undefined;
  readonly proxy: UnitStatus | undefined;
  readonly logs: { readonly app: string | undefined; readonly proxy: string | undefined };
  /** How to run something beside it. */
  readonly shell: Shell;
}

/** The status of the mesh with this status file; undefined when there is none. */
export async function readStatus(file: string): Promise<MeshStatus | undefined> {
  const text = await ignoring(["ENOENT"], () => readFile(file, "utf8"));
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new MeshError("STATUS_UNREADABLE", `Cannot read "${file}": run \`mizzen down\` to clean up`, { cause });
  }
}

/** Starts of a member's processes after the first. */
export function restartsOf({ app, proxy }: Pick<MemberStatus, "app" | "proxy">): number {
  return (app?.restarts ?? 0) + (proxy?.restarts ?? 0);
}
