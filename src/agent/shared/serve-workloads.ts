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
import { once } from "node:events";
import { watch } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { SHARED_DEBUG_SOCKET } from "../debug-socket/path.ts";
import { parseWorkloadFile, type WorkloadFile } from "./workload-file.ts";
import { runWorkload, type WorkloadState } from "./workload-run.ts";

export interface ServeWorkloadsInput {
  readonly folder: string;
  /** The agent's own program, to be run inside namespaces. */
  readonly program: readonly string[];
  /** Serve profiles on the debug socket. */
  readonly profiling: boolean;
  readonly log: Logger;
  /** Asks for an end with draining. */
  readonly stop: AbortSignal;
  /** Asks for an end at once. */
  readonly hurry: AbortSignal;
}

/** A file of the folder: what is in it, or why that cannot be told. */
type WorkloadSource = { readonly text: string } | { readonly problem: string };

interface Running {
  readonly source: WorkloadSource;
  readonly end: AbortController;
}

const SUFFIX = ".json";
/** Files of one change most often come together. */
const SETTLE_MS = 20;

/** Resolves when it was told to stop and all workloads are gone. Rejects when there is no such folder. */
export async function serveWorkloads(input: ServeWorkloadsInput): Promise<void> {
  const { folder, log, stop } = input;
  await listed(folder);
  const shortFolder = await mkdtemp(join(tmpdir(), "agent-"));
  const server = new WorkloadServer(input, shortFolder);
  try {
    const changed = () => void server.update().catch((thrown: unknown) => log.error(errorText(thrown)));
    watchWorkloads(folder, changed, stop);
    if (input.profiling) await openDebugSocket(input);
    await server.update();
    if (!stop.aborted) await new Promise((resolve) => stop.addEventListener("abort", resolve, { once: true }));
    await server.end();
  } finally {
    await rm(shortFolder, { recursive: true, force: true });
  }
}

/** Without it the workloads are served as well. */
async function openDebugSocket({ folder, log, stop }: ServeWorkloadsInput): Promise<void> {
  const { serveDebugSocket } = await import("../debug-socket/serve.ts");
  await serveDebugSocket({ path: join(folder, SHARED_DEBUG_SOCKET), log }, stop).catch((thrown: unknown) =>
    log.error(`Profiles are not served: ${errorText(thrown)}`),
  );
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
  /** Those that are wanted. */
  readonly #running = new Map<string, Running>();
  /** Those that are there: they may take their time to drain. Resolved when the last of that name is gone. */
  readonly #gone = new Map<string, Promise<void>>();
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
    await Promise.all(this.#gone.values());
  }

  async #update(): Promise<void> {
    if (this.#input.stop.aborted) return;
    const wanted = await sources(this.#input.folder);
    for (const [name, running] of this.#running) {
      const source = wanted.get(name);
      if (source !== undefined && isDeepStrictEqual(source, running.source)) continue;
      running.end.abort();
      this.#running.delete(name);
    }
    for (const [name, source] of wanted) {
      if (!this.#running.has(name)) this.#running.set(name, this.#start(name, source));
    }
  }

  /** A workload that changed has its ports only when the old one has given them up. The others do not wait for that. */
  #start(name: string, source: WorkloadSource): Running {
    const end = new AbortController();
    const stop = AbortSignal.any([this.#input.stop, end.signal]);
    const before = this.#gone.get(name) ?? Promise.resolve();
    const gone = before.then(() => this.#run(name, source, stop));
    this.#gone.set(name, gone);
    void gone.then(() => {
      if (this.#gone.get(name) === gone) this.#gone.delete(name);
    });
    return { source, end };
  }

  async #run(name: string, source: WorkloadSource, stop: AbortSignal): Promise<void> {
    const { hurry, log, program, folder } = this.#input;
    const report = stateWriter(join(folder, `${name}.state`), log);
    try {
      const workload = parseSource(source);
      const shortFolder = join(this.#shortFolder, String(this.#started++));
      await runWorkload({ name, workload, program, log, report, hurry, shortFolder, stop });
    } catch (thrown) {
      log.error(`Workload ${name} is not served: ${errorText(thrown)}`);
      report({ state: "failed", restarts: 0, reason: errorText(thrown) });
      if (!stop.aborted) await once(stop, "abort");
      report({ state: "stopped", restarts: 0 });
    }
  }
}

function parseSource(source: WorkloadSource): WorkloadFile {
  if ("problem" in source) throw new MeshError("FILE_UNREADABLE", source.problem);
  return parseWorkloadFile(source.text);
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

/** What the folder has of workloads, by name. A file that cannot be read is the trouble of its workload alone. */
async function sources(folder: string): Promise<Map<string, WorkloadSource>> {
  const files = (await listed(folder)).filter((file) => file.endsWith(SUFFIX)).sort();
  const read = files.map(async (file) => [file.slice(0, -SUFFIX.length), await sourceOf(join(folder, file))] as const);
  return new Map((await Promise.all(read)).flatMap(([name, source]) => (source === undefined ? [] : [[name, source]])));
}

async function listed(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (cause) {
    throw new MeshError("FILE_UNREADABLE", `Cannot read the workloads in ${folder}`, { cause });
  }
}

/** Undefined when it is gone again. */
async function sourceOf(file: string): Promise<WorkloadSource | undefined> {
  try {
    return { text: await readFile(file, "utf8") };
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return undefined;
    return { problem: `it cannot be read: ${errorText(thrown)}` };
  }
}
