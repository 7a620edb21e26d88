/**
 * What a running mesh can be told, over the unix socket `control.sock` of its state folder: one JSON object a line. A
 * request is answered by any number of `progress` lines and then by one `done` or `failed`. Changes are made one after the
 * other, in the order in which they were asked for.
 */
import type { Member } from "../mesh/mesh.ts";
import type { Account } from "../plan/enter.ts";
import type { Desired } from "../plan/plan.ts";
import type { ProxyDetails } from "../status/proxy-details.ts";
import type { MemberStatus, MeshStatus } from "../status/status.ts";

export type ControlRequest =
  | StatusRequest
  | DetailsRequest
  | ApplyRequest
  | ConfigureRequest
  | WorkloadRequest
  | ScaleRequest
  | JoinRequest
  | LeaveRequest
  | WatchRequest;

export interface StatusRequest {
  readonly kind: "status";
}

/** What the proxies tell about themselves. */
export interface DetailsRequest {
  readonly kind: "details";
}

/** Makes the mesh what is desired; what does not differ goes on as it is. */
export interface ApplyRequest {
  readonly kind: "apply";
  readonly desired: Desired;
  /** New published ports take free host ports. */
  readonly freePorts: boolean;
  /** How long what is new or changed may take to become ready. */
  readonly timeoutMs: number;
}

/** Adds objects to the configuration, replaces or removes those that were added so. `done` comes when all proxies have them. */
export interface ConfigureRequest {
  readonly kind: "configure";
  readonly apply: readonly AppliedObject[];
  /** By `kind/namespace/name`. */
  readonly remove: readonly string[];
}

export interface AppliedObject {
  /** `kind/namespace/name` */
  readonly key: string;
  /** As written. */
  readonly object: Readonly<Record<string, unknown>>;
}

/** A workload with all its replicas, one member, or `istiod`. */
export interface WorkloadRequest {
  readonly kind: "restart" | "stop" | "start";
  readonly workload: string;
}

export interface ScaleRequest {
  readonly kind: "scale";
  readonly workload: string;
  readonly replicas: number;
}

/**
 * Adds a member for as long as the connection stays open. `done` comes when its proxy is ready: whoever joined then runs
 * what it likes in the member's place (`MemberStatus.shell`).
 */
export interface JoinRequest {
  readonly kind: "join";
  /** Without an app of its own. With a `readiness` probe it gets traffic when that succeeds, else as soon as it has joined. */
  readonly member: Member;
  /** Whom its commands run as. */
  readonly account: Account;
  readonly cwd: string;
  readonly timeoutMs: number;
}

/** Removes a member that joined; closing its connection does the same. */
export interface LeaveRequest {
  readonly kind: "leave";
  /** `name.namespace` */
  readonly member: string;
}

/**
 * Progress lines of all changes, and of members that come and go, until either side closes; `done` when the mesh ends. The first
 * line is empty: from then on none is missed.
 */
export interface WatchRequest {
  readonly kind: "watch";
}

/** What `done` brings, by request. */
export interface ControlAnswers {
  readonly status: MeshStatus;
  readonly details: MeshDetails;
  readonly apply: ChangeSummary;
  readonly configure: ChangeSummary;
  readonly restart: ChangeSummary;
  readonly stop: ChangeSummary;
  readonly start: ChangeSummary;
  readonly scale: ChangeSummary;
  readonly join: MemberStatus;
  readonly leave: null;
  readonly watch: MeshEnd;
}

/** The status with what each proxy that answers tells, by `name.namespace`. */
export interface MeshDetails {
  readonly status: MeshStatus;
  readonly proxies: Readonly<Record<string, ProxyDetails>>;
}

/** What a change did, one line for each thing, such as `web restarted`; empty when there was nothing to do. */
export interface ChangeSummary {
  readonly changes: readonly string[];
  readonly status: MeshStatus;
}

/** How a mesh ended: the exit code of its jobs. */
export interface MeshEnd {
  readonly code: number;
}

export type ControlReply =
  | { readonly kind: "progress"; readonly line: string }
  | { readonly kind: "done"; readonly answer: unknown }
  | { readonly kind: "failed"; readonly code: string; readonly message: string };
