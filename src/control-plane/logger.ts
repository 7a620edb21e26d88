import { createLogger, type RootLogger } from "#lib/log/log.ts";
import { fileWriter, streamWriter, type WriteLine } from "#lib/log/log-writers.ts";
import { MeshError } from "#lib/mesh-error.ts";
import type { LogSettings } from "./settings/config.ts";

/** The logger that `--log_*` describe. A file that cannot be written is found now, not at the first line. */
export function loggerOf({ targets, ...settings }: LogSettings): RootLogger {
  const writers = targets.map((target) => {
    if (target === "stdout") return streamWriter(process.stdout);
    if (target === "stderr") return streamWriter(process.stderr);
    return opened(target);
  });
  const write = (line: string) => {
    for (const writer of writers) writer(line);
  };
  return createLogger({ write, ...settings });
}

function opened(file: string): WriteLine {
  try {
    return fileWriter(file);
  } catch (cause) {
    throw new MeshError("LOG_UNWRITABLE", `cannot write the log to "${file}" (--log_target)`, { cause });
  }
}
