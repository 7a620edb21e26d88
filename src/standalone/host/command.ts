/** Short-lived programs of the machine. */
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { MeshError } from "#lib/mesh-error.ts";

export interface CommandInput {
  readonly argv: readonly string[];
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Runs a program to its end and answers with what it printed. A failure is an error with the program's own words. */
export async function runCommand({ argv, stdin = "", env, cwd }: CommandInput): Promise<string> {
  const [program = "", ...args] = argv;
  const child = spawn(program, args, {
    stdio: ["pipe", "pipe", "pipe"],
    ...(env === undefined ? {} : { env: { ...env } }),
    ...(cwd === undefined ? {} : { cwd }),
  });
  const ended = new Promise<number | NodeJS.Signals>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(code ?? signal ?? 1));
  });
  // A program that ends without reading all of its input says why by its exit code.
  child.stdin.on("error", () => undefined);
  child.stdin.end(stdin);
  try {
    const [out, err, status] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    if (status === 0) return out;
    throw new Error(`exit ${status}: ${(err.trim() || out.trim()).slice(-500)}`);
  } catch (cause) {
    throw new MeshError("COMMAND_FAILED", `"${describe(argv)}" failed`, { cause });
  }
}

function describe(argv: readonly string[]): string {
  const text = argv.join(" ").replaceAll(/\s+/g, " ");
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}
