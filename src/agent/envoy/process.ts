import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { MeshError } from "#lib/mesh-error.ts";

export interface EnvoyCommand {
  readonly binaryPath: string;
  readonly args: readonly string[];
  /** Begins the command line, where Envoy runs in another place than the agent. */
  readonly enter?: readonly string[];
  /** Empty for the agent's own. */
  readonly workingFolder?: string;
  /** The user and group to run as, where it is not the agent's. */
  readonly user?: number | undefined;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly output?: number | "inherit";
}

/** How a process ended: by itself with a status, or by a signal. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface EnvoyProcess {
  /** Resolves when the process is gone. */
  readonly exited: Promise<ProcessExit>;
  /** Throws when the system does not let us. */
  kill(): void;
}

/** Starts Envoy. Rejects when there is nothing to start. */
export async function startEnvoy(command: EnvoyCommand): Promise<EnvoyProcess> {
  const { binaryPath, args, enter = [], workingFolder = "", user, env, output = "inherit" } = command;
  const [program = binaryPath, ...rest] = [...enter, binaryPath, ...args];
  const child = spawn(program, rest, {
    stdio: ["ignore", output, output],
    ...(workingFolder === "" ? {} : { cwd: workingFolder }),
    ...(user === undefined ? {} : { uid: user, gid: user }),
    ...(env === undefined ? {} : { env: { ...env } }),
  });
  const exited = exitOf(child);
  try {
    await once(child, "spawn");
  } catch (cause) {
    throw new MeshError("ENVOY_NOT_STARTED", `Cannot start Envoy: ${binaryPath} ${reason(cause)}`, { cause });
  }
  return { exited, kill: () => killChild(child) };
}

/** A child that runs as another user may refuse. */
function killChild(child: ChildProcess): void {
  let refused: Error | undefined;
  const onError = (error: Error) => {
    refused = error;
  };
  child.once("error", onError);
  child.kill("SIGKILL");
  child.off("error", onError);
  if (refused !== undefined) throw refused;
}

/** The status by which a shell would report the end. */
export function exitStatus({ code, signal }: ProcessExit): number {
  return signal === null ? (code ?? 1) : 128 + constants.signals[signal];
}

function exitOf(child: ChildProcess): Promise<ProcessExit> {
  return new Promise((resolve) => {
    child.on("exit", (code, signal) => resolve({ code, signal }));
  });
}

function reason(cause: unknown): string {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  if (code === "ENOENT") return "does not exist (ProxyConfig.binaryPath names it)";
  if (code === "EACCES") return "is not a program that this user may run (ProxyConfig.binaryPath names it)";
  return `failed: ${cause instanceof Error ? cause.message : String(cause)}`;
}
