import { appendFileSync } from "node:fs";
import { createLogger, type RootLogger } from "#lib/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import type { LogSettings } from "./config.ts";

/** The logger that `--log_*` describe. A file that cannot be written is found now, not at the first line. */
export function loggerOf({ targets, ...settings }: LogSettings): RootLogger {
  const writers = targets.map((target) => {
    if (target === "stdout") return (line: string) => void process.stdout.write(line);
    if (target === "stderr") return (line: string) => void process.stderr.write(line);
    append(target, "");
    return (line: string) => append(target, line);
  });
  const write = (line: string) => {
    for (const writer of writers) writer(line);
  };
  return createLogger({ write, ...settings });
}

function append(file: string, line: string): void {
  try {
    appendFileSync(file, line);
  } catch (cause) {
    throw new MeshError("LOG_UNWRITABLE", `cannot write the log to "${file}" (--log_target)`, { cause });
  }
}
