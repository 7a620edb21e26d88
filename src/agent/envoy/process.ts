import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { MeshError } from "#lib/mesh-error.ts";

export interface EnvoyCommand {
  readonly binaryPath: string;
  readonly args: readonly string[];
}

/** How a process ended: by itself with a status, or by a signal. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface EnvoyProcess {
  /** Resolves when the process is gone. */
  readonly exited: Promise<ProcessExit>;
  kill(): void;
}

/** Starts Envoy, whose output goes to ours. Rejects when there is nothing to start. */
export async function startEnvoy({ binaryPath, args }: EnvoyCommand): Promise<EnvoyProcess> {
  const child = spawn(binaryPath, args, { stdio: "inherit" });
  const exited = exitOf(child);
  try {
    await once(child, "spawn");
  } catch (cause) {
    throw new MeshError("ENVOY_NOT_STARTED", `Cannot start Envoy: ${binaryPath} ${reason(cause)}`, { cause });
  }
  return { exited, kill: () => void child.kill("SIGKILL") };
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
