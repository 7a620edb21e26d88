/**
 * Configuration from files and folders, watched.
 *
 *     watches --path--> pending changes --(2 ms)--> read file --> documents that differ --> snapshot --> subscribers
 *                              ^                        |
 *                              +---- again in 30 ms ----+  if it loses or breaks objects: then it is believed
 *
 * An editor may empty a file before it fills it, or remove it before it puts the new one in its place. So a change that
 * adds or changes objects counts at once, and one that loses some counts when it lasts.
 */
import { basename, resolve, sep } from "node:path";
import type { UnreadablePolicy } from "#config/kinds/unreadable-policy.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Logger } from "#lib/log/log.ts";
import type { Features } from "#model/features.ts";
import type { KeySets } from "#model/key-set.ts";
import type { ObjectProblem, Source, WorkloadEntries } from "#model/ports.ts";
import type { GatewayAddresses } from "#model/service/network-gateway.ts";
import { type ConfigFile, losesObjects, readConfigFile, unreadableConfigFile } from "../config-file.ts";
import { ObjectTable } from "../object-table.ts";
import { ProblemReporter } from "../report.ts";
import { SnapshotStore } from "../snapshot-store.ts";
import { FolderWatches } from "./folder-watches.ts";
import { type MeshFile, missingMeshFile, NO_MESH_FILE, readMeshFile, unreadableMeshFile } from "./mesh-file.ts";
import { type NetworksFile, NO_NETWORKS_FILE, readNetworksFile, withNetworks } from "./networks-file.ts";
import { type Changes, PendingChanges } from "./pending-changes.ts";
import { type ReadApart, type ReadText, readNewDocuments, readText } from "./read-text.ts";
import { isConfigName, isFolder, nearestFolder, type Scan, scanPaths } from "./scan.ts";

export interface FileSourceOptions {
  /** Folders, or single files, that hold the configuration. */
  readonly folders: readonly string[];
  readonly meshConfigFile?: string | undefined;
  /** Says which networks the mesh has; need not exist. */
  readonly networksFile?: string | undefined;
  readonly features: Features;
  readonly log: Logger;
  /** Objects of another `istio.io/rev` are left out; empty takes all. `default` when not given. */
  readonly revision?: string | undefined;
  /** Reads large documents; without it they are read on this thread, and nothing else happens meanwhile. */
  readonly readApart?: ReadApart | undefined;
  /** Called after each reading, also where it changes nothing in the mesh: problems come and go. */
  readonly onRead?: (() => void) | undefined;
}

export interface FileSource extends Source, WorkloadEntries {
  /** What stands in for security objects that cannot be read, in any form. */
  unreadable(): readonly ConfigObject<UnreadablePolicy>[];
  /** How long it took to build the newest snapshot. */
  buildSeconds(): number;
  /** Replaces the fetched keys of token issuers. */
  takeKeySets(keySets: KeySets): void;
  /** Replaces what names of gateways between networks were resolved to. */
  takeGatewayAddresses(addresses: GatewayAddresses): void;
  /** What the files of the mesh config and of networks say. */
  meshFiles(): { readonly mesh: MeshFile; readonly networks: NetworksFile };
  /** Reads everything, calls the subscribers, then watches until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
}

/** A source over files. Does nothing before `run`. */
export function fileSource(options: FileSourceOptions): FileSource {
  return new WatchedFiles(options);
}

/** How long a loss has to last. */
const CONFIRM_MS = 30;
/** For file systems that tell of no changes, and for events that got lost. */
const RESCAN_MS = 30_000;
/** Files that are read at the same time. */
const BATCH = 64;

class WatchedFiles extends SnapshotStore implements FileSource {
  readonly #roots: readonly string[];
  readonly #meshPath: string | undefined;
  readonly #networksPath: string | undefined;
  readonly #log: Logger;
  readonly #readApart: ReadApart | undefined;
  readonly #onRead: (() => void) | undefined;
  readonly #reporter: ProblemReporter;
  readonly #pending = new PendingChanges();
  readonly #watches: FolderWatches;
  readonly #table: ObjectTable;
  #scan: Scan = { files: new Map(), folders: new Map(), failures: new Map() };
  #mesh: MeshFile = NO_MESH_FILE;
  #networks: NetworksFile = NO_NETWORKS_FILE;
  #started = false;

  constructor({ features, log, revision = "default", readApart, onRead, ...paths }: FileSourceOptions) {
    super(features);
    const { folders, meshConfigFile, networksFile } = paths;
    this.#roots = folders.map((folder) => resolve(folder));
    this.#meshPath = meshConfigFile === undefined ? undefined : resolve(meshConfigFile);
    this.#networksPath = networksFile === undefined ? undefined : resolve(networksFile);
    this.#table = new ObjectTable(revision);
    this.#log = log;
    this.#readApart = readApart;
    this.#onRead = onRead;
    this.#reporter = new ProblemReporter(log);
    this.#watches = new FolderWatches({
      onChange: (path) => this.#pending.touch(path),
      onFailure: (folder, reason) =>
        log.warn(`Cannot watch "${folder}": changes are seen every ${RESCAN_MS / 1000} s only`, { reason }),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    using _watches = this.#watches;
    using pending = this.#pending;
    await this.#follow({ paths: new Set(), confirmed: new Set(), rescan: true });
    this.#started = true;
    this.#log.info("Configuration read", { files: this.#table.size, objects: this.objects().length });
    while (!signal.aborted) {
      const changes = await pending.take(RESCAN_MS, signal);
      if (!signal.aborted) await this.#follow(changes);
    }
  }

  meshFiles(): { readonly mesh: MeshFile; readonly networks: NetworksFile } {
    return { mesh: this.#mesh, networks: this.#networks };
  }

  unreadable(): readonly ConfigObject<UnreadablePolicy>[] {
    return this.#table.collection().unreadable;
  }

  /** Looks at what changed, and publishes if that made a difference. */
  async #follow(changes: Changes): Promise<void> {
    const paths = new Set([...changes.paths].filter((path) => this.#isOurFile(path)));
    const others = [...changes.paths].filter((path) => !paths.has(path));
    const rescan =
      changes.rescan || (await Promise.all(others.map((path) => this.#concernsFolders(path)))).includes(true);
    const failuresBefore = [...this.#scan.failures].join();
    if (rescan) for (const path of await this.#rescan()) paths.add(path);
    let changed = !this.#started || [...this.#scan.failures].join() !== failuresBefore;
    for (const batch of batches([...paths], BATCH)) {
      const texts = await Promise.all(batch.map(readText));
      // One after the other: each takes slices of the event loop, and those of many files together would be a long one.
      for (const [i, path] of batch.entries()) {
        const differs = await this.#look(path, texts[i] ?? {}, changes.confirmed.has(path));
        changed ||= differs;
      }
    }
    if (changed) await this.#publishAll();
  }

  #isOurFile(path: string): boolean {
    if (this.#settings.includes(path) || this.#table.get(path) !== undefined) return true;
    return isConfigName(path) && !basename(path).startsWith(".") && this.#isInside(path);
  }

  /** The files that hold no objects. */
  get #settings(): readonly string[] {
    return [this.#meshPath, this.#networksPath].filter((path) => path !== undefined);
  }

  #isInside(path: string): boolean {
    return this.#roots.some((root) => path.startsWith(root + sep));
  }

  /** Whether folders may have come, gone or been exchanged. Mounted ConfigMaps exchange a link named `..data`. */
  async #concernsFolders(path: string): Promise<boolean> {
    if (this.#watches.has(path) || basename(path).startsWith("..")) return true;
    const aims = [...this.#roots, ...this.#settings];
    if (aims.some((aim) => aim === path || aim.startsWith(path + sep))) return true;
    return this.#isInside(path) && isFolder(path);
  }

  /** Looks at all folders; returns the files that differ from the last time. */
  async #rescan(): Promise<string[]> {
    const before = this.#scan.files;
    do {
      this.#scan = await scanPaths(this.#roots);
    } while (this.#watches.update(await this.#foldersToWatch()));
    const { files } = this.#scan;
    const differing = [...files.keys()].filter((path) => files.get(path) !== before.get(path));
    const gone = [...this.#table.names()].filter((path) => !files.has(path));
    return [...differing, ...gone, ...this.#settings];
  }

  /** What a configured path held stays when the path itself is gone: that is more likely a mishap than a wish. */
  async #lostItsRoot(path: string): Promise<boolean> {
    const root = this.#roots.find((root) => path === root || path.startsWith(root + sep));
    return root === path || (root !== undefined && !(await isFolder(root)));
  }

  /** Besides the folders that were found, those in which the configured paths themselves come and go. */
  async #foldersToWatch(): Promise<ReadonlyMap<string, string>> {
    const aims = [...this.#roots, ...this.#settings];
    return new Map([...(await Promise.all(aims.map(nearestFolder))), ...this.#scan.folders]);
  }

  /** Looks at one file as it was read. Returns whether that made a difference. */
  async #look(path: string, { text, failure }: ReadText, confirmed: boolean): Promise<boolean> {
    if (path === this.#meshPath) return this.#lookAtMesh(path, { text, failure }, confirmed);
    if (path === this.#networksPath) return this.#lookAtNetworks(path, { text, failure }, confirmed);
    const previous = this.#table.get(path);
    if (text !== undefined && text === previous?.text) return false;
    const next = await nextFile({ path, text, failure, previous, readApart: this.#readApart });
    if (this.#started && !confirmed && losesObjects(previous, next)) {
      this.#pending.confirmLater(path, CONFIRM_MS);
      return false;
    }
    if (next === undefined) return !(await this.#lostItsRoot(path)) && this.#table.delete(path);
    this.#table.set(next);
    return true;
  }

  #lookAtMesh(path: string, { text, failure }: ReadText, confirmed: boolean): boolean {
    if (text !== undefined && text === this.#mesh.text) return false;
    const next = nextMesh({ path, text, failure, previous: this.#mesh });
    const doubtful = (text ?? "") === "" || next.problems.some(({ severity }) => severity === "error");
    if (this.#started && !confirmed && doubtful && next.text !== this.#mesh.text) {
      this.#pending.confirmLater(path, CONFIRM_MS);
      return false;
    }
    this.#mesh = next;
    return true;
  }

  #lookAtNetworks(path: string, { text, failure }: ReadText, confirmed: boolean): boolean {
    if (text === this.#networks.text && failure === undefined) return false;
    const next = readNetworksFile(path, { text, failure }, this.#networks);
    const doubtful = (text ?? "") === "" || next.problems.some(({ severity }) => severity === "error");
    if (this.#started && !confirmed && doubtful) {
      this.#pending.confirmLater(path, CONFIRM_MS);
      return false;
    }
    this.#networks = next;
    return true;
  }

  async #publishAll(): Promise<void> {
    const { problems, ...found } = this.#table.collection();
    const all = [...problems, ...this.#failures(), ...this.#mesh.problems, ...this.#networks.problems];
    await this.publishInSlices({ ...found, problems: all }, withNetworks(this.#mesh.mesh, this.#networks));
    this.#reporter.report(this.problems());
    this.#onRead?.();
  }

  #failures(): ObjectProblem[] {
    return [...this.#scan.failures].map(([file, message]) => ({
      object: "",
      field: "",
      message,
      severity: "error",
      origin: { file, line: 1 },
    }));
  }
}

interface NextInput<Previous> extends ReadText {
  readonly path: string;
  readonly previous: Previous;
}

async function nextFile(
  input: NextInput<ConfigFile | undefined> & Pick<FileSourceOptions, "readApart">,
): Promise<ConfigFile | undefined> {
  const { path: file, text, failure, previous, readApart } = input;
  if (failure !== undefined) return unreadableConfigFile(file, failure, previous);
  if (text === undefined) return undefined;
  const known = await readNewDocuments(text, { known: previous?.documents, readApart });
  return readConfigFile({ file, text, previous, known });
}

function nextMesh({ path, text, failure, previous }: NextInput<MeshFile>): MeshFile {
  if (failure !== undefined) return unreadableMeshFile(path, failure, previous);
  return text === undefined ? missingMeshFile(path, previous) : readMeshFile(path, text, previous);
}

function batches<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}
