/** The objects of all files as one configuration. */

import type { UnreadablePolicy } from "#config/kinds/unreadable-policy.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { REVISION_LABEL } from "#config/terms/revision.ts";
import type { RemoteCluster } from "#convert/clusters/remote-clusters.ts";
import { changedSorted } from "#lib/collections/list-changes.ts";
import { compareText } from "#lib/text/compare-text.ts";
import type { ObjectProblem } from "#model/ports.ts";
import type { ConfigFile } from "./config-file.ts";

/** A configuration and what is wrong with it. */
export interface Collection {
  readonly objects: readonly ConfigObject[];
  readonly problems: readonly ObjectProblem[];
  /** What stands in for security objects that cannot be read and have no last good version. */
  readonly unreadable: readonly ConfigObject<UnreadablePolicy>[];
  /** What runs in further clusters. */
  readonly remotes?: readonly RemoteCluster[];
}

/** What Kubernetes runs is the same for all of them: on these the label says who injects. */
const REVISIONLESS: ReadonlySet<string> = new Set([
  "ConfigMap",
  "EndpointSlice",
  "Namespace",
  "Node",
  "Pod",
  "Secret",
  "Service",
]);

/**
 * Files by name, and what they hold together. Files count in the order of their names, folder by folder; of two objects with one name the
 * last counts, as with `kubectl apply` and in istiod. When files change but the names of their objects do not, which is the usual event, then the objects are
 * exchanged in place and nothing is joined again.
 */
export class ObjectTable {
  readonly #revision: string;
  readonly #files = new Map<string, ConfigFile>();
  /** In order; undefined when they have to be sorted. */
  #names: readonly string[] | undefined;
  #objects: readonly ConfigObject[] = [];
  #unreadable: readonly ConfigObject<UnreadablePolicy>[] = [];
  /** Place in `#objects` by key; undefined when all has to be joined again. */
  #places: ReadonlyMap<string, number> | undefined;
  #duplicates: readonly ObjectProblem[] = [];
  /** Of all files; undefined when they have to be collected again. */
  #problems: readonly ObjectProblem[] | undefined;

  /** Objects of another `istio.io/rev` than this are left out; an empty revision takes all. */
  constructor(revision: string) {
    this.#revision = revision;
  }

  get size(): number {
    return this.#files.size;
  }

  names(): Iterable<string> {
    return this.#files.keys();
  }

  get(name: string): ConfigFile | undefined {
    return this.#files.get(name);
  }

  set(next: ConfigFile): void {
    const previous = this.#files.get(next.file);
    this.#files.set(next.file, next);
    if (previous === undefined) {
      this.#names = this.#names && changedSorted(this.#names, { removed: [], added: [next.file] }, byFolder);
    }
    if (hasProblems(previous) || hasProblems(next)) this.#problems = undefined;
    const isReadable = next.unreadable.length + (previous?.unreadable.length ?? 0) === 0;
    if (this.#places !== undefined && previous !== undefined && isReadable && this.#hasSameKeys(previous, next)) {
      this.#exchange(next, this.#places);
    } else this.#places = undefined;
  }

  delete(name: string): boolean {
    this.#places = undefined;
    this.#names = undefined;
    return this.#files.delete(name);
  }

  collection(): Collection {
    if (this.#places === undefined) this.#join();
    this.#problems ??= this.#collectProblems();
    return { objects: this.#objects, problems: this.#problems, unreadable: this.#unreadable };
  }

  #collectProblems(): readonly ObjectProblem[] {
    const files = (this.#names ?? []).flatMap((name) => this.#files.get(name) ?? []);
    const problems = files.filter(({ problems }) => problems.length > 0).flatMap(({ problems }) => problems);
    return [...problems, ...this.#duplicates, ...notYetProblems(files)];
  }

  #hasSameKeys(a: ConfigFile, b: ConfigFile): boolean {
    const keysOfA = a.objects.filter(({ object }) => this.#isOurs(object)).map(({ key }) => key);
    const keysOfB = b.objects.filter(({ object }) => this.#isOurs(object)).map(({ key }) => key);
    return keysOfA.length === keysOfB.length && keysOfA.every((key, i) => key === keysOfB[i]);
  }

  #exchange(file: ConfigFile, places: ReadonlyMap<string, number>): void {
    const objects = [...this.#objects];
    for (const { key, object } of file.objects) {
      const place = this.#isOurs(object) ? places.get(key) : undefined;
      if (place !== undefined) objects[place] = object;
    }
    this.#objects = objects;
  }

  #join(): void {
    const objects: ConfigObject[] = [];
    const places = new Map<string, number>();
    const duplicates: ObjectProblem[] = [];
    const unreadable = new Map<string, ConfigObject<UnreadablePolicy>[]>();
    this.#names ??= [...this.#files.keys()].map(sortable).sort().map(unsortable);
    for (const name of this.#names) {
      for (const { key, object } of this.#files.get(name)?.objects ?? []) {
        if (!this.#isOurs(object)) continue;
        unreadable.delete(key);
        const place = places.get(key);
        if (place === undefined) places.set(key, objects.push(object) - 1);
        else {
          duplicates.push(duplicate(key, objects[place], object));
          objects[place] = object;
        }
      }
      // Several may have no readable name.
      for (const object of this.#files.get(name)?.unreadable ?? []) {
        if (!this.#isOurs(object)) continue;
        const key = objectKey(object);
        const same = unreadable.get(key) ?? [];
        same.push(object);
        unreadable.set(key, same);
      }
    }
    this.#objects = objects;
    this.#unreadable = [...unreadable.values()].flat();
    this.#duplicates = duplicates;
    this.#problems = undefined;
    // With duplicates a place would not tell which file it belongs to.
    this.#places = duplicates.length === 0 ? places : undefined;
  }

  #isOurs(object: ConfigObject): boolean {
    return isOfRevision(object, this.#revision);
  }
}

function hasProblems(file: ConfigFile | undefined): boolean {
  return file !== undefined && file.problems.length + file.notYet.length > 0;
}

/** Whether a control plane of that revision acts upon the object; one of no revision acts upon all. */
export function isOfRevision({ kind, metadata }: ConfigObject, revision: string): boolean {
  const label = REVISIONLESS.has(kind) ? undefined : metadata.labels[REVISION_LABEL];
  return label === undefined || revision === "" || label === revision;
}

/** What is in a folder stands together: its separator comes before all letters. */
function sortable(path: string): string {
  return path.replaceAll("/", "\0");
}

function byFolder(a: string, b: string): number {
  return compareText(sortable(a), sortable(b));
}

function unsortable(path: string): string {
  return path.replaceAll("\0", "/");
}

function duplicate(key: string, first: ConfigObject | undefined, { origin }: ConfigObject): ObjectProblem {
  const message = `is defined again in ${origin?.file}:${origin?.line}: ignored`;
  return { object: key, field: "", message, severity: "error", origin: first?.origin };
}

/** One for each kind, where it is met first. */
function notYetProblems(files: readonly ConfigFile[]): ObjectProblem[] {
  const byKind = new Map<string, ObjectProblem>();
  for (const { file, notYet } of files) {
    for (const { kind, line } of notYet) {
      if (byKind.has(kind)) continue;
      const message = `kind "${kind}" is not yet supported: ignored`;
      byKind.set(kind, { object: "", field: "", message, severity: "warning", origin: { file, line } });
    }
  }
  return [...byKind.values()];
}
