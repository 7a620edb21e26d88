/** The objects of the API server as last read, each parsed and checked once per version. */
import type { ConfigObject } from "#config/config-object.ts";
import { parseObject } from "#config/parse-object.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import type { ObjectProblem } from "#model/ports.ts";
import type { Collection } from "../object-table.ts";

interface KnownObject {
  readonly resourceVersion: string | undefined;
  /** As it last was without errors. */
  readonly object: ConfigObject | undefined;
  readonly problems: readonly ObjectProblem[];
}

/** The label by which several control planes share a configuration: each acts upon its own revision and on what names none. */
const REVISION_LABEL = "istio.io/rev";

export class KnownObjects {
  readonly #revision: string;
  /** By kind, then by namespace and name. */
  readonly #byKind = new Map<string, Map<string, KnownObject>>();
  #collection: Collection | undefined;

  /** Objects of another `istio.io/rev` than this are left out. */
  constructor(revision: string) {
    this.#revision = revision;
  }

  /** Takes the newest version of an object; an object that is broken now stays as it last was. */
  put(kind: string, raw: RawObject): void {
    const objects = this.#of(kind);
    const name = nameOf(raw);
    const before = objects.get(name);
    const { resourceVersion } = raw.metadata;
    if (before !== undefined && before.resourceVersion === resourceVersion) return;
    const { object, problems, key } = parseObject(raw);
    const next = {
      resourceVersion,
      object: object ?? (problems.some(({ severity }) => severity === "error") ? before?.object : undefined),
      problems: problems.map((problem) => ({ ...problem, object: key, origin: undefined })),
    };
    objects.set(name, next);
    this.#collection = undefined;
  }

  remove(kind: string, raw: RawObject): void {
    if (this.#of(kind).delete(nameOf(raw))) this.#collection = undefined;
  }

  /** Forgets what is not among these. */
  keepOnly(kind: string, raws: readonly RawObject[]): void {
    const named = new Set(raws.map(nameOf));
    for (const name of this.#of(kind).keys()) {
      if (!named.has(name)) this.#of(kind).delete(name);
    }
    this.#collection = undefined;
  }

  /** All of them, in an order that does not depend on when they were read. */
  collection(): Collection {
    this.#collection ??= this.#collect();
    return this.#collection;
  }

  #collect(): Collection {
    const known = [...this.#byKind].sort(byFirst).flatMap(([, objects]) => [...objects].sort(byFirst));
    const objects = known.flatMap(([, { object }]) => (object !== undefined && this.#isOurs(object) ? [object] : []));
    return { objects, problems: known.flatMap(([, { problems }]) => problems) };
  }

  #of(kind: string): Map<string, KnownObject> {
    const objects = this.#byKind.get(kind) ?? new Map<string, KnownObject>();
    this.#byKind.set(kind, objects);
    return objects;
  }

  #isOurs({ metadata }: ConfigObject): boolean {
    const label = metadata.labels[REVISION_LABEL];
    return label === undefined || label === this.#revision;
  }
}

function nameOf({ metadata }: RawObject): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

function byFirst([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
