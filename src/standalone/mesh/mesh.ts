/** The one-machine mesh as a person described it in `mesh.yaml`, checked and with all defaults filled in. */

export interface Mesh {
  readonly name: string;
  /** Absolute path of the mesh file. */
  readonly file: string;
  /** Line of each workload and gateway in the file, by `name.namespace`; for messages alone. */
  readonly lines: Readonly<Record<string, number>>;
  /** Absolute paths of the files and folders with Kubernetes and Istio objects. */
  readonly config: readonly string[];
  /** As written: the control plane reads it as its mesh config. */
  readonly meshConfig: Readonly<Record<string, unknown>>;
  readonly members: readonly Member[];
  /** The range of addresses that the mesh has for itself. */
  readonly cidr: string;
  /** Whether each proxy has an agent process of its own, or all have one. */
  readonly agents: AgentsMode;
  /** The mesh ends by itself when all of its jobs have. */
  readonly exitWhenDone: boolean;
  /** What becomes of security objects that cannot be read. */
  readonly onUnreadablePolicy: "deny" | "ignore";
  /** What a person may try when the mesh is ready. */
  readonly suggestions: readonly Suggestion[];
}

export const AGENTS_MODES = ["own", "shared"] as const;
export type AgentsMode = (typeof AGENTS_MODES)[number];

/** `run` is a command line in which `{mizzen}` is this program and `{folder}` the folder of the mesh file. */
export interface Suggestion {
  readonly what: string;
  readonly run: string;
}

/** What is a pod in Kubernetes: one replica of a workload or of a gateway. */
export interface Member {
  /** The pod's name: that of the workload, with the number of the replica when there are several. */
  readonly name: string;
  /** Name without the number of the replica. */
  readonly workload: string;
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly ports: readonly Port[];
  readonly publish: readonly PublishEntry[];
  /** `none` for a workload with `inject: false`. */
  readonly proxy: "sidecar" | "router" | "none";
  /** Workloads, by `name.namespace`, that must be ready before the app is started; jobs must be done. */
  readonly after: readonly string[];
  /** Without it the member is ready when its app has been started. */
  readonly readiness: Probe | undefined;
  /** A gateway has none. */
  readonly app: App | undefined;
}

/** What happens when an app ends by itself. All but `always` make it a job. */
export const RESTART_POLICIES = ["always", "onFailure", "never"] as const;
export type RestartPolicy = (typeof RESTART_POLICIES)[number];

export interface App {
  readonly command: readonly string[];
  /** Absolute. */
  readonly workingDir: string;
  readonly env: Readonly<Record<string, string>>;
  /** Absolute paths of files with more variables; those of `env` win. */
  readonly envFrom: readonly string[];
  /** Account by name or number; undefined for one that no other workload has. */
  readonly user: string | undefined;
  readonly restart: RestartPolicy;
  /** An app that fails it is started again. */
  readonly liveness: Probe | undefined;
  readonly limits: Limits;
}

/** What an app may use at most; what is undefined is not limited. */
export interface Limits {
  readonly memoryBytes: number | undefined;
  /** In thousandths of a processor. */
  readonly cpuMillis: number | undefined;
  readonly pids: number | undefined;
}

export interface Port {
  /** Empty when it has none. */
  readonly name: string;
  readonly port: number;
  /** UDP is not captured: it goes past the sidecar. */
  readonly protocol: "TCP" | "UDP";
}

/** A host port that leads to a port of a member. */
export interface PublishEntry {
  /** As written. */
  readonly text: string;
  readonly host: string;
  /** 0 picks a free one. */
  readonly hostPort: number;
  readonly port: number;
}

/** How to tell that an app is ready, or alive. */
export interface Probe {
  /** 0 for a command. */
  readonly port: number;
  /** An HTTP GET that must answer 200 to 399; without it an accepted connection is enough. */
  readonly httpGet: { readonly path: string; readonly headers: Readonly<Record<string, string>> } | undefined;
  /** A command that must exit with 0, run beside the app, instead of asking a port. */
  readonly exec: readonly string[] | undefined;
  readonly initialDelayMs: number;
  readonly periodMs: number;
  readonly timeoutMs: number;
  readonly failureThreshold: number;
  readonly successThreshold: number;
}

/** `name.namespace`: unique in a mesh, and what namespaces, folders and logs of a member are called after. */
export function memberKey({ name, namespace }: Pick<Member, "name" | "namespace">): string {
  return `${name}.${namespace}`;
}

/** `name.namespace` of the workload that a member is a replica of. */
export function workloadKey({ workload, namespace }: Pick<Member, "workload" | "namespace">): string {
  return `${workload}.${namespace}`;
}

/** Whether the app is meant to end by itself. */
export function isJob({ app }: Pick<Member, "app">): boolean {
  return app !== undefined && app.restart !== "always";
}

/** Account of agents and Envoys; the capture rules let its traffic pass, so no app may have it. */
export const PROXY_ID = 1337;

/** Where a member is in the mesh file, as messages begin: `mesh.yaml:12: `; empty when it is in none. */
export function placeOf(
  { file, lines = {} }: Partial<Pick<Mesh, "file" | "lines">>,
  member: Pick<Member, "workload" | "namespace">,
): string {
  return file === undefined ? "" : `${file}:${lines[workloadKey(member)] ?? 1}: `;
}

type MemberName = Pick<Member, "name" | "namespace">;

/** What a person calls a member: its name, with its namespace where another member has the same. */
export function shortestName(member: MemberName, all: readonly MemberName[]): string {
  return all.filter(({ name }) => name === member.name).length > 1 ? memberKey(member) : member.name;
}
