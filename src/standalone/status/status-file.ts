/** Keeps the status file up to date without writing it more often than anybody could read it. */
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { writeAtomically } from "../host/write-files.ts";
import type { MeshStatus } from "./status.ts";

const INTERVAL_MS = 50;

export class StatusFile {
  readonly #path: string;
  readonly #current: () => MeshStatus;
  readonly #log: Logger;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(path: string, current: () => MeshStatus, log: Logger) {
    this.#path = path;
    this.#current = current;
    this.#log = log;
  }

  /** Something changed. */
  touch(): void {
    if (this.#closed) return;
    this.#timer ??= setTimeout(() => void this.write(), INTERVAL_MS);
  }

  /** Writes now. */
  write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(async () => {
      const text = `${JSON.stringify(this.#current(), null, 2)}\n`;
      try {
        await writeAtomically({ path: this.#path, text, mode: 0o600, owner: 0 });
      } catch (error) {
        this.#log.error("the status file is not up to date", { reason: errorText(error) });
      }
    });
    return this.#writing;
  }

  /** Nothing is written after this resolves. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#writing;
  }
}
