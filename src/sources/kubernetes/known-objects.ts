/** The objects of one API server as last read, each parsed and checked once per version. */

import { parseObject } from "#config/kinds/parse-object.ts";
import { type UnreadablePolicy, unreadablePolicy } from "#config/kinds/unreadable-policy.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { withReplacements } from "#lib/collections/list-changes.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import type { ObjectProblem } from "#model/ports.ts";
import { type Collection, isOfRevision } from "../object-table.ts";

interface KnownObject {
  readonly resourceVersion: string | undefined;
  /** As it last was without errors. */
  readonly object: ConfigObject | undefined;
  readonly problems: readonly ObjectProblem[];
  /** What stands in for a security object that was never without errors. */
  readonly unreadable: ConfigObject<UnreadablePolicy> | undefined;
}

/** Objects of one kind, by namespace and name. */
interface KnownKind {
  readonly objects: Map<string, KnownObject>;
  /** The names in order; undefined after one came or went. */
  names: readonly string[] | undefined;
  /** In that order; undefined after a change. */
  collection: Collection | undefined;
}

/** What became of an object. */
export type ObjectEvent = "add" | "update" | "delete";

export class KnownObjects {
  readonly #revision: string;
  readonly #byKind = new Map<string, KnownKind>();
  #collection: Collection | undefined;

  /** Configuration of another `istio.io/rev` than this is left out. */
  constructor(revision: string) {
    this.#revision = revision;
  }

  /** Takes the newest version of an object; an object that is broken now stays as it last was. Nothing happens to one that is known. */
  put(kind: string, raw: RawObject): ObjectEvent | undefined {
    const known = this.#of(kind);
    const name = nameOf(raw);
    const before = known.objects.get(name);
    const { resourceVersion } = raw.metadata;
    if (before !== undefined && before.resourceVersion === resourceVersion) return undefined;
    const { object, problems, key } = parseObject(raw);
    const wrong = problems.find(({ severity }) => severity === "error");
    const kept = object ?? (wrong === undefined ? undefined : before?.object);
    const next = {
      resourceVersion,
      object: kept,
      problems: problems.map((problem) => ({ ...problem, object: key, origin: undefined })),
      unreadable:
        kept === undefined && wrong !== undefined
          ? unreadablePolicy(raw, `${wrong.field} ${wrong.message}`.trim())
          : undefined,
    };
    known.objects.set(name, next);
    if (before === undefined) known.names = undefined;
    if (before === undefined || !this.#replaced(known, before, next)) this.#changed(known);
    return before === undefined ? "add" : "update";
  }

  /** Whether it was there. */
  remove(kind: string, raw: RawObject): boolean {
    const known = this.#of(kind);
    if (!known.objects.delete(nameOf(raw))) return false;
    known.names = undefined;
    this.#changed(known);
    return true;
  }

  /** Forgets what is not among these; gives how many that were. */
  keepOnly(kind: string, raws: readonly RawObject[]): number {
    const known = this.#of(kind);
    const named = new Set(raws.map(nameOf));
    const gone = [...known.objects.keys()].filter((name) => !named.has(name));
    for (const name of gone) known.objects.delete(name);
    known.names = undefined;
    this.#changed(known);
    return gone.length;
  }

  /** All of them, in an order that does not depend on when they were read. */
  collection(): Collection {
    this.#collection ??= joined([...this.#byKind].sort(byFirst).map(([, known]) => this.#collect(known)));
    return this.#collection;
  }

  #collect(known: KnownKind): Collection {
    known.names ??= [...known.objects.keys()].sort();
    known.collection ??= this.#inOrder(known.names.flatMap((name) => known.objects.get(name) ?? []));
    return known.collection;
  }

  #inOrder(known: readonly KnownObject[]): Collection {
    return {
      objects: known.flatMap(({ object }) => (object && isOfRevision(object, this.#revision) ? [object] : [])),
      problems: known.flatMap(({ problems }) => problems),
      unreadable: known.flatMap(({ unreadable }) =>
        unreadable && isOfRevision(unreadable, this.#revision) ? [unreadable] : [],
      ),
    };
  }

  #of(kind: string): KnownKind {
    const known = this.#byKind.get(kind) ?? { objects: new Map(), names: undefined, collection: undefined };
    this.#byKind.set(kind, known);
    return known;
  }

  /** Most events put an object in the place of another, beside which thousands stay. False where more than that changed. */
  #replaced(known: KnownKind, before: KnownObject, { object, problems }: KnownObject): boolean {
    const last = before.object;
    if (last === undefined || object === undefined || before.problems.length + problems.length > 0) return false;
    if (!isOfRevision(last, this.#revision) || !isOfRevision(object, this.#revision)) return false;
    const replaced = (collection: Collection | undefined) => {
      const objects = collection && withReplacements(collection.objects, [[last, object]]);
      return objects && { ...collection, objects };
    };
    known.collection = replaced(known.collection);
    this.#collection = replaced(this.#collection);
    return true;
  }

  #changed(known: KnownKind): void {
    known.collection = undefined;
    this.#collection = undefined;
  }
}

function joined(collections: readonly Collection[]): Collection {
  return {
    objects: collections.flatMap(({ objects }) => objects),
    problems: collections.flatMap(({ problems }) => problems),
    unreadable: collections.flatMap(({ unreadable }) => unreadable),
  };
}

function nameOf({ metadata }: RawObject): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

function byFirst([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
