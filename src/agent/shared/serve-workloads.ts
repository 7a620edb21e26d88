/**
 * One agent for several workloads, each in a network namespace of its own:
 *
 *   FOLDER/web.json ──▶ runWorkload ──▶ runAgent (sockets, identity, streams, Envoy of its own)
 *   FOLDER/db.json  ──▶ runWorkload ──▶ runAgent
 *   FOLDER/web.state ◀── how it is
 *
 * A file that appears is a workload to serve, one that disappears is drained and ended, a changed one is both. What fails
 * in one workload stays there: it is started again with growing pauses.
 */
import { watch } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Logger } from "#lib/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { parseWorkloadFile } from "./workload-file.ts";
import { runWorkload, type WorkloadState } from "./workload-run.ts";

export interface ServeWorkloadsInput {
  readonly folder: string;
  /** The agent's own program, to be run inside namespaces. */
  readonly program: readonly string[];
  readonly log: Logger;
  /** Asks for an end with draining. */
  readonly stop: AbortSignal;
  /** Asks for an end at once. */
  readonly hurry: AbortSignal;
}

interface Running {
  readonly text: string;
  readonly end: AbortController;
  readonly ended: Promise<void>;
}

const SUFFIX = ".json";
/** Files of one change most often come together. */
const SETTLE_MS = 20;

/** Resolves when it was told to stop and all workloads are gone. Rejects when there is no such folder. */
export async function serveWorkloads(input: ServeWorkloadsInput): Promise<void> {
  const { folder, log, stop } = input;
  await texts(folder);
  const shortFolder = await mkdtemp(join(tmpdir(), "agent-"));
  const server = new WorkloadServer(input, shortFolder);
  try {
    const changed = () => void server.update().catch((thrown: unknown) => log.error(errorText(thrown)));
    watchWorkloads(folder, changed, stop);
    await server.update();
    if (!stop.aborted) await new Promise((resolve) => stop.addEventListener("abort", resolve, { once: true }));
    await server.end();
  } finally {
    await rm(shortFolder, { recursive: true, force: true });
  }
}

/** Calls back soon after the files of workloads changed; what is said about them is of no concern. */
function watchWorkloads(folder: string, onChange: () => void, signal: AbortSignal): void {
  let timer: NodeJS.Timeout | undefined;
  const watcher = watch(folder, { persistent: false }, (_, file) => {
    if (file?.endsWith(SUFFIX) === false) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      onChange();
    }, SETTLE_MS);
  });
  watcher.on("error", () => watcher.close());
  signal.addEventListener(
    "abort",
    () => {
      clearTimeout(timer);
      watcher.close();
    },
    { once: true },
  );
}

class WorkloadServer {
  readonly #input: ServeWorkloadsInput;
  readonly #shortFolder: string;
  readonly #running = new Map<string, Running>();
  #started = 0;
  #updating: Promise<void> = Promise.resolve();

  constructor(input: ServeWorkloadsInput, shortFolder: string) {
    this.#input = input;
    this.#shortFolder = shortFolder;
  }

  /** Makes the workloads those of the folder. One update after the other. */
  update(): Promise<void> {
    this.#updating = this.#updating.catch(() => undefined).then(() => this.#update());
    return this.#updating;
  }

  /** Resolves when all are gone; they see by themselves that they are to stop. */
  async end(): Promise<void> {
    await this.#updating.catch(() => undefined);
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  async #update(): Promise<void> {
    if (this.#input.stop.aborted) return;
    const wanted = await texts(this.#input.folder);
    for (const [name, running] of this.#running) {
      if (wanted.get(name) === running.text) continue;
      running.end.abort();
      this.#running.delete(name);
      // A workload that changed has its ports only when the old one has given them up.
      if (wanted.has(name)) await running.ended;
    }
    for (const [name, text] of wanted) {
      if (!this.#running.has(name)) this.#running.set(name, this.#start(name, text));
    }
  }

  #start(name: string, text: string): Running {
    const { stop, hurry, log, program, folder } = this.#input;
    const end = new AbortController();
    const report = stateWriter(join(folder, `${name}.state`), log);
    let ended: Promise<void>;
    try {
      const workload = parseWorkloadFile(text);
      ended = runWorkload({
        name,
        workload,
        program,
        log,
        report,
        hurry,
        shortFolder: join(this.#shortFolder, String(this.#started++)),
        stop: AbortSignal.any([stop, end.signal]),
      });
    } catch (thrown) {
      log.error(`Workload ${name} is not served: ${errorText(thrown)}`);
      report({ state: "failed", restarts: 0, reason: errorText(thrown) });
      ended = Promise.resolve();
    }
    return { text, end, ended };
  }
}

/** Writes states one after the other, the last one last; a workload that is gone leaves none. */
function stateWriter(file: string, log: Logger): (state: WorkloadState) => void {
  let writing: Promise<void> = Promise.resolve();
  return (state) => {
    writing = writing
      .then(() =>
        state.state === "stopped" ? rm(file, { force: true }) : writeFile(file, `${JSON.stringify(state)}\n`),
      )
      .catch((thrown: unknown) => log.warn(`The state of a workload is not written: ${errorText(thrown)}`));
  };
}

async function texts(folder: string): Promise<Map<string, string>> {
  try {
    const files = (await readdir(folder)).filter((file) => file.endsWith(SUFFIX)).sort();
    const entries = await Promise.all(
      files.map(async (file) => [file.slice(0, -SUFFIX.length), await readFile(join(folder, file), "utf8")] as const),
    );
    return new Map(entries);
  } catch (cause) {
    throw new MeshError("FILE_UNREADABLE", `Cannot read the workloads in ${folder}`, { cause });
  }
}
