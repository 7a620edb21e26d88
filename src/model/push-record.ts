/** What the push journal tells: changes of the mesh, and the responses that followed from them. */

/** A change that was sent out, all its events together. */
export interface ChangeRecord {
  /** Counts up from 1. */
  readonly id: number;
  /** When the first event of it came, and when it went out; milliseconds since 1970. */
  readonly changedAt: number;
  readonly releasedAt: number;
  /** `+ Kind/namespace/name` for what is new, `- ...` for what is gone, `~ ...` for what changed; the first of them. */
  readonly objects: readonly string[];
  /** How many there were. */
  readonly objectCount: number;
}

/** A response to one proxy. */
export interface PushRecord {
  /** Id of the newest change that it could hold; 0 for what was there when the control plane started. */
  readonly change: number;
  readonly at: number;
  readonly node: string;
  /** `cds`, `eds`, ... */
  readonly type: string;
  /** Proxies with the same one have the same configuration of this type. */
  readonly view: string;
  readonly resources: number;
  readonly removed: number;
  readonly bytes: number;
  readonly result: "sent" | "acknowledged" | "rejected";
  /** Milliseconds until the answer. */
  readonly answeredAfter?: number;
  /** What the proxy said when it rejected the response, and of which resources and objects. */
  readonly error?: string;
  readonly culprits?: readonly string[];
}

/** Read by pages. */
export interface PushHistory {
  /** Oldest first. */
  changes(): readonly ChangeRecord[];
  pushes(): readonly PushRecord[];
}
