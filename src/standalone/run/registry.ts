/** The folder through which the control plane learns who is ready: one WorkloadEntry file per ready member. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { writeAtomically } from "../host/write-files.ts";
import type { Member } from "../mesh/mesh.ts";
import { workloadEntry, workloadEntryFile } from "../plan/workload-entry.ts";

export class Registry {
  readonly #folder: string;
  /** Changes are made one after the other: the last one wins, not the slowest. */
  #last: Promise<void> = Promise.resolve();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Lists a member at its address. */
  add(member: Member, address: string): Promise<void> {
    const path = join(this.#folder, workloadEntryFile(member));
    return this.#after(() => writeAtomically({ path, text: workloadEntry(member, address), mode: 0o644, owner: 0 }));
  }

  remove(member: Member): Promise<void> {
    return this.#after(() => rm(join(this.#folder, workloadEntryFile(member)), { force: true }));
  }

  #after(change: () => Promise<void>): Promise<void> {
    const done = this.#last.then(change);
    // The caller hears of the failure; the next change is not held up by it.
    this.#last = done.catch(() => undefined);
    return done;
  }
}
