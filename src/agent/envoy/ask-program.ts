/** What an Envoy program says about itself and about a bootstrap, without serving. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { MeshError } from "#lib/mesh-error.ts";
import type { EnvoyCommand } from "./process.ts";

const TIMEOUT_MS = 30_000;

/** Envoys that give the same can replace one another while they serve. */
export async function hotRestartVersion(binaryPath: string): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(binaryPath, ["--hot-restart-version"], { timeout: TIMEOUT_MS });
    return stdout.trim();
  } catch (cause) {
    throw new MeshError("ENVOY_NOT_STARTED", `${binaryPath} does not tell its hot-restart version`, { cause });
  }
}

/** What Envoy has against starting like that; undefined when nothing. */
export async function validationProblem({
  binaryPath,
  args,
  workingFolder = "",
}: EnvoyCommand): Promise<string | undefined> {
  const options = { timeout: TIMEOUT_MS, ...(workingFolder === "" ? {} : { cwd: workingFolder }) };
  try {
    await promisify(execFile)(binaryPath, [...args, "--mode", "validate"], options);
    return undefined;
  } catch (thrown) {
    const words = thrown instanceof Error && "stderr" in thrown ? String(thrown.stderr) : String(thrown);
    return `it refuses the configuration: ${words.trim().split("\n").at(-1)}`;
  }
}
