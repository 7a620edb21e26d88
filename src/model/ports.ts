/** Interfaces through which folders of layer 4 meet; `bin/` fills them in. */

import type { WorkloadEntry, WorkloadEntryStatus } from "#config/kinds/workload-entry/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Origin, Problem } from "#config/schema/problem.ts";
import type { Proxy as MeshProxy } from "./proxy/proxy.ts";
import type { Snapshot } from "./snapshot.ts";

/** A problem with one object, as a source reports it. */
export interface ObjectProblem extends Problem {
  /** `kind/namespace/name`, or the empty string when the document is not an object at all. */
  readonly object: string;
  readonly origin: Origin | undefined;
}

/** Where snapshots come from. The first one is there once `run` has called `onSnapshot`. */
export interface Source {
  /** The newest snapshot. */
  current(): Snapshot;
  /** All objects as last accepted, for debug pages. */
  objects(): readonly ConfigObject[];
  /** Problems of the newest state. */
  problems(): readonly ObjectProblem[];
  /** Called after each new snapshot; returns the way to stop. */
  subscribe(onSnapshot: (snapshot: Snapshot) => void): () => void;
}

/** Signs certificate requests on behalf of an authenticated caller. */
export interface CertificateSigner {
  /** PEM certificates, leaf first, root last. The certificate carries `identity` and nothing else of the request. */
  sign(request: SignRequest): Promise<readonly string[]>;
  /** PEM of the roots that workloads trust. */
  trustBundle(): string;
}

export interface SignRequest {
  readonly csrPem: string;
  /** SPIFFE id of the authenticated caller. */
  readonly identity: string;
  readonly ttlSeconds: number;
}

/** Who is calling, as proved by a token or a client certificate. */
export interface Caller {
  /** `spiffe://trust-domain/ns/NAMESPACE/sa/ACCOUNT` */
  readonly identity: string;
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly provedBy: "jwt" | "certificate";
  /** The pod that a token of Kubernetes is bound to. */
  readonly pod?: string;
  readonly podUid?: string;
}

/** Answers a caller's question for a debug page, such as `syncz` or `config_dump?proxyID=...`. */
export type DebugAnswers = (page: string, caller: Caller) => { readonly body: string } | { readonly refused: string };

/** Limits the bytes that wait to be read. */
export interface SendBudget {
  /**
   * Calls back when there is room for an answer, perhaps at once; the callback takes the bytes of the answer. Gives the way to prevent
   * the call; undefined when too many wait already.
   */
  whenRoom(send: () => void): (() => void) | undefined;
  take(bytes: number): void;
  /** They were read, or nobody waits for them any more. */
  giveBack(bytes: number): void;
}

/** A message about connected proxies, as istioctl asks for it. */
export interface StatusMessage {
  readonly name: string;
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

/** Answers a caller's question for `syncz`, or for the `config_dump` of the proxy that is named. */
export type StatusAnswers = (
  question: { readonly page: string; readonly names: readonly string[] },
  caller: Caller,
) => readonly StatusMessage[];

/** A proxy on one of its connections. */
export type ObservedProxy = Pick<ConnectedProxy, "connectionId" | "proxy" | "connectedAt">;

/** Hears of proxies that come, go, and tell how their workload is. */
export interface ProxyObserver {
  /** A proxy introduced itself. Returns why it cannot be served, if so. */
  connected(observed: ObservedProxy): string | undefined;
  disconnected(observed: ObservedProxy): void;
  /** The workload is well, or this is wrong with it. */
  health(observed: ObservedProxy, problem: string | undefined): void;
}

/** Where WorkloadEntries are written that nobody wrote by hand. */
export interface WorkloadEntries {
  /** Makes the entry, or changes annotations and status of the one that was there. */
  put(
    entry: ConfigObject<WorkloadEntry, WorkloadEntryStatus>,
    before: ConfigObject<WorkloadEntry, WorkloadEntryStatus> | undefined,
  ): Promise<void>;
  remove(entry: ConfigObject<WorkloadEntry, WorkloadEntryStatus>): Promise<void>;
}

/** One of the certificates of the mesh's authority, for people. */
export interface CertificateStatus {
  readonly subject: string;
  readonly serial: string;
  readonly expires: string;
  readonly daysLeft: number;
  /** Set when the end is near. */
  readonly warning: string | undefined;
}

/** With what the mesh's authority signs, and which roots are trusted. */
export interface AuthorityStatus {
  /** From the signing certificate to its root. */
  readonly signing: readonly CertificateStatus[];
  readonly roots: readonly CertificateStatus[];
}

/** What is known of a connected proxy, for debug pages and metrics. */
export interface ConnectedProxy {
  readonly connectionId: string;
  readonly nodeId: string;
  /** Where it called from, `10.0.0.1:41888`. */
  readonly address: string;
  /** As it described itself. */
  readonly proxy: MeshProxy;
  readonly connectedAt: number;
  readonly istioVersion: string;
  /** By type URL. */
  readonly types: ReadonlyMap<
    string,
    {
      readonly sent: string;
      readonly acknowledged: string;
      readonly rejected: string;
      /** When the last response was sent, in milliseconds since 1970. */
      readonly sentAt?: number | undefined;
    }
  >;
  /** Ends its stream; it comes back, here or at another replica. */
  disconnect?(): void;
  /** Names of the resources of a type that it has or is about to get, each with the encoded message. */
  resources(typeUrl: string): Iterable<readonly [name: string, message: Uint8Array]>;
}
