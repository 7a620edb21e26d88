/** Runs a command as a member of a running mesh: with an identity, a sidecar and an address of its own, while it lasts. */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { MeshError } from "#lib/mesh-error.ts";
import { connectToMesh } from "../control/ask.ts";
import { startForeground } from "../host/foreground.ts";
import { checkMembers } from "../mesh/check-members.ts";
import { membersOf } from "../mesh/members.ts";
import type { Member } from "../mesh/mesh.ts";
import type { WorkloadFields } from "../mesh/mesh-schema.ts";
import { type Account, enterFromTerminal } from "../plan/enter.ts";
import type { Shell } from "../plan/process.ts";
import type { MemberStatus } from "../status/status.ts";
import { accountsOf } from "../up/accounts.ts";
import { commandProblem } from "../up/find-command.ts";

/** What a person asked for; what is undefined has the default that a workload of mesh.yaml has. */
export interface RunRequest {
  readonly name: string | undefined;
  readonly namespace: string | undefined;
  readonly serviceAccount: string | undefined;
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly ports: readonly number[];
  /** Variables beside those of the person, or of the user. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute. */
  readonly workdir: string;
  /** Undefined for the person's own account. */
  readonly user: string | undefined;
  readonly inject: boolean;
  readonly command: readonly string[];
  readonly timeoutMs: number;
}

/** Whoever runs it. */
export interface Person {
  readonly account: Account;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Runs the command in the mesh with this state folder, and answers with its exit code. Nothing of it is left then. */
export async function runInMesh(stateFolder: string, request: RunRequest, person: Person): Promise<number> {
  const member = memberOf(request);
  const account = request.user === undefined ? person.account : await accountOf(member);
  using connection = await connectToMesh(stateFolder);
  const { workdir: cwd, timeoutMs } = request;
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort();
  for (const signal of INTERRUPTS) process.once(signal, interrupt);
  let joined: MemberStatus;
  try {
    const join = { kind: "join", member: { ...member, app: undefined }, account, cwd, timeoutMs } as const;
    joined = await connection.ask(join, { signal: interrupted.signal });
  } catch (error) {
    if (interrupted.signal.aborted) return INTERRUPTED;
    throw error;
  } finally {
    for (const signal of INTERRUPTS) process.off(signal, interrupt);
  }
  try {
    return await runCommandIn(joined.shell, request, person);
  } finally {
    // A mesh that ends takes all of its members with it.
    await connection.ask({ kind: "leave", member: `${member.name}.${member.namespace}` }).catch(() => undefined);
  }
}

const INTERRUPTS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const INTERRUPTED = 130;

async function runCommandIn(shell: Shell, { command, user, env }: RunRequest, person: Person): Promise<number> {
  const own = user === undefined ? { ...person.env, HOME: person.env.HOME ?? shell.account.home } : shell.env;
  const all = { ...own, ...podVariables(shell), ...env };
  const path = all.PATH ?? shell.env.PATH ?? "";
  const { place, account, cwd } = shell;
  const problem = await commandProblem({ command: command[0] ?? "", workingDir: cwd, path, account });
  if (problem !== undefined) throw new MeshError("COMMAND_NOT_FOUND", `Cannot run it in the mesh: ${problem}`);
  const argv = enterFromTerminal({ place, account, cwd, command });
  return startForeground({ argv, inside: true, env: { ...all, PATH: path } }).ended;
}

const POD_VARIABLES: readonly string[] = ["POD_NAME", "POD_NAMESPACE", "POD_IP", "SERVICE_ACCOUNT"];

function podVariables({ env }: Shell): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => POD_VARIABLES.includes(name)));
}

/** The command as a workload of mesh.yaml would be; everything that is checked there is checked here. */
export function memberOf(request: RunRequest, random = () => randomBytes(3).toString("hex")): Member {
  const { namespace, serviceAccount, ports, env, user, inject, command } = request;
  const name = request.name ?? `run-${random()}`;
  const [firstPort] = ports;
  const workload: WorkloadFields = {
    name,
    labels: request.labels ?? { app: name },
    command: [...command],
    env: { ...env },
    inject,
    ports: [...ports],
    ...(namespace === undefined ? {} : { namespace }),
    ...(serviceAccount === undefined ? {} : { serviceAccount }),
    ...(user === undefined ? {} : { user }),
    // Others are sent to it when it listens, and not before.
    ...(firstPort === undefined ? {} : { readiness: { tcpSocket: { port: firstPort } } }),
  };
  const problems = checkMembers({ workloads: [workload] }).filter(({ severity }) => severity === "error");
  if (problems.length > 0) {
    const lines = problems.map(({ field, message }) => `${flagOf(field)} ${message}`);
    throw new MeshError("RUN_INVALID", `Cannot run it in the mesh: ${lines.join("; ")}`);
  }
  const [member] = membersOf({ workloads: [workload] }, request.workdir);
  if (member === undefined) throw new Error("a workload is a member");
  return member;
}

const FLAGS: Readonly<Record<string, string>> = {
  name: "--name",
  namespace: "--namespace",
  serviceAccount: "--service-account",
  labels: "--label",
  ports: "--port",
  env: "--env",
  user: "--user",
  command: "the command",
};

/** How a person gave a field such as `spec.workloads[0].labels.app`. */
function flagOf(field: string): string {
  const [, name = "", rest = ""] = /^spec\.workloads\[0\]\.(\w+)(.*)$/.exec(field) ?? [];
  return `${FLAGS[name] ?? field}${rest === "" || name === "ports" ? "" : ` ${rest.replace(/^\./, "")}`}`;
}

async function accountOf(member: Member): Promise<Account> {
  const accounts = accountsOf({ members: [member] }, await readFile("/etc/passwd", "utf8"));
  const account = accounts[member.app?.user ?? ""];
  if (account === undefined) throw new Error("an account was looked up");
  return account;
}
