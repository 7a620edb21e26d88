/** Exit codes of `mizzen`, by the error that a command ends with. */
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { Terminal } from "./terminal.ts";

export const EXIT = { failed: 1, usage: 2, machine: 3, mesh: 4, interrupted: 130 } as const;

const CODES: Readonly<Record<string, number>> = {
  MESH_FILE_MISSING: EXIT.usage,
  MESH_FILE_INVALID: EXIT.usage,
  CONFIG_MISSING: EXIT.usage,
  CONFIG_INVALID: EXIT.usage,
  CONFIG_UNREADABLE: EXIT.usage,
  INIT_EXISTS: EXIT.usage,
  INIT_INVALID: EXIT.usage,
  OBJECT_TAKEN: EXIT.usage,
  OBJECT_UNKNOWN: EXIT.usage,
  WORKING_DIR_MISSING: EXIT.usage,
  WORKING_DIR_TOO_LARGE: EXIT.usage,
  COMMAND_NOT_FOUND: EXIT.usage,
  USER_UNKNOWN: EXIT.usage,
  USER_NOT_ALLOWED: EXIT.usage,
  MEMBER_UNKNOWN: EXIT.usage,
  MEMBER_AMBIGUOUS: EXIT.usage,
  NO_PROXY: EXIT.usage,
  NOTHING_PUBLISHED: EXIT.usage,
  ENV_FILE_INVALID: EXIT.usage,
  SCALE_INVALID: EXIT.usage,
  MEMBER_EXISTS: EXIT.usage,
  MEMBER_OF_FILE: EXIT.usage,
  RUN_INVALID: EXIT.usage,
  TRANSLATE_INVALID: EXIT.usage,
  INSTALL_INVALID: EXIT.usage,
  INSTALL_UNCONFIRMED: EXIT.usage,
  TAG_REFUSED: EXIT.usage,
  POD_UNKNOWN: EXIT.usage,
  INJECTION_SETTINGS_MISSING: EXIT.usage,
  KUBE_CONFIG_INVALID: EXIT.usage,
  PROXY_CONFIG_INVALID: EXIT.usage,
  PROXY_INVALID: EXIT.usage,
  CONFIG_DUMP_INVALID: EXIT.usage,
  NOT_ROOT: EXIT.machine,
  EGRESS_FAILED: EXIT.machine,
  TOOL_MISSING: EXIT.machine,
  ENVOY_MISSING: EXIT.machine,
  NOT_BUILT: EXIT.machine,
  NAMESPACE_FAILED: EXIT.machine,
  KERNEL_REFUSED: EXIT.machine,
  LIMITS_UNAVAILABLE: EXIT.machine,
  PORT_UNAVAILABLE: EXIT.machine,
  STATE_UNWRITABLE: EXIT.machine,
  STATE_UNREACHABLE: EXIT.machine,
  STATE_INSIDE: EXIT.usage,
  STATE_NOT_EMPTY: EXIT.usage,
  MESH_ALREADY_UP: EXIT.mesh,
  MESH_NOT_UP: EXIT.mesh,
  MESH_AMBIGUOUS: EXIT.mesh,
  MESH_BUSY: EXIT.mesh,
  MESH_ENDING: EXIT.mesh,
  MESH_NOT_LISTENING: EXIT.mesh,
};

export const EXIT_CODES_HELP = `Exit codes: 0 done, 1 failed, 2 wrong command line or mesh.yaml, 3 something is missing on this machine,
4 the mesh is not up (or already is), 130 interrupted.`;

/** Runs the body of a command and sets the exit code; an error that is not a bug becomes one line. */
export async function finish(terminal: Terminal, body: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await body();
  } catch (error) {
    if (!(error instanceof MeshError)) throw error;
    terminal.say(`mizzen: ${errorText(error)}`);
    process.exitCode = CODES[error.code] ?? EXIT.failed;
  }
}
