/**
 * A mesh of one machine, for programs and tests.
 *
 *     import { startMesh } from "mizzen/mesh";
 *
 *     await using mesh = await startMesh("samples/bookinfo");
 *     const answer = await mesh.workload("productpage-v1").fetch("http://reviews:9080/reviews/0");
 *
 * This file is what a program sees of the package: declarations alone, without an import, so that a compiler needs nothing
 * else of it. Whatever fails throws an error with a `code` of docs/reference/errors.md.
 */

/**
 * Starts the mesh of a folder with a mesh.yaml, and resolves when all of it is ready. It has a name, a state folder and
 * published ports of its own, so that several can be up at once, and ends with this process, however that ends.
 */
export declare function startMesh(folder: string, options?: StartMeshOptions): Promise<Mesh>;

/** A mesh that somebody else started, such as `mizzen up --detach`, by its state folder. Nothing is taken over: it goes on when this process ends. */
export declare function openMesh(state: string): Promise<Mesh>;

export interface StartMeshOptions {
  /** A random one when left out. */
  readonly name?: string;
  /** Where identity, logs and status are kept. When left out, a temporary folder that is removed by `stop`. */
  readonly state?: string;
  /** Publish on the host ports of mesh.yaml, instead of free ones. */
  readonly fixedPorts?: boolean;
  /** Workloads reach what this machine reaches. */
  readonly egress?: boolean;
  /** How long the mesh may take to become ready; 120 seconds when left out. */
  readonly timeoutMs?: number;
  /** What happens while it starts, line by line. */
  readonly onProgress?: (line: string) => void;
}

export interface Mesh extends AsyncDisposable {
  readonly name: string;
  /** Folder of its identity, logs and status. */
  readonly state: string;
  /** One of its workloads, gateways, or `istiod`: by `name`, `name.namespace`, or the name of a workload with replicas, which means the first. */
  workload(name: string): Workload;
  /** All of them as they are now. */
  workloads(): Promise<readonly WorkloadStatus[]>;
  /** Where a published port is reached, such as `http://127.0.0.1:8080`: that of the workload, or the only one there is. */
  url(workload?: string): Promise<string>;
  /** Adds Kubernetes and Istio objects or replaces those of the same name: YAML text, or objects. Resolves to their names when all proxies have them. */
  apply(config: string | object | readonly object[]): Promise<readonly string[]>;
  /** Removes objects that were applied; only kind, name and namespace of them count. */
  delete(config: string | object | readonly object[]): Promise<readonly string[]>;
  /** Reads mesh.yaml again and changes what differs, as `mizzen up` does. */
  reload(): Promise<void>;
  /** Ends the mesh and removes everything of it. Doing so again does nothing. */
  stop(): Promise<void>;
}

export interface Workload {
  readonly name: string;
  /** Calls an address from inside, as the app would: through its sidecar, with its identity. Needs no program but Node, which every workload has. */
  fetch(url: string | URL, init?: FetchOptions): Promise<Response>;
  /** Runs a program inside, as the app's user and with its variables, to its end. A failure of the program is a result, not an error. */
  exec(command: readonly string[], options?: ExecOptions): Promise<ExecResult>;
  /** What the app printed so far, or its proxy. */
  logs(of?: "app" | "proxy"): Promise<string>;
  status(): Promise<WorkloadStatus>;
  /** Ends app and proxy and starts them again; resolves when they are ready. */
  restart(): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Gives it this many replicas. */
  scale(replicas: number): Promise<void>;
}

export interface FetchOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** `follow` when left out. */
  readonly redirect?: "follow" | "manual" | "error";
  /** Hangs up when it aborts. */
  readonly signal?: AbortSignal;
}

export interface ExecOptions {
  readonly input?: string | Uint8Array;
  /** Variables beside those of the workload. */
  readonly env?: Readonly<Record<string, string>>;
  /** Kills the program when it aborts. */
  readonly signal?: AbortSignal;
}

export interface ExecResult {
  /** As a shell gives it: 128 and the number of the signal when one ended the program. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface WorkloadStatus {
  readonly name: string;
  readonly namespace: string;
  readonly kind: "workload" | "gateway" | "control-plane";
  readonly address: string;
  /** `done` and `failed` are jobs that have ended. */
  readonly state: "running" | "stopped" | "done" | "failed";
  readonly ready: boolean;
  /** Why it is not ready; empty when it is. */
  readonly reason: string;
  /** Starts of its app and proxy after the first. */
  readonly restarts: number;
}
