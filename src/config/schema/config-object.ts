import type { Origin } from "./problem.ts";

/** What every object has beside its spec. */
export interface Metadata {
  readonly name: string;
  /** Always set: objects without one are in `default`. */
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Milliseconds since 1970; 0 where the source knows no time. Older objects win conflicts. */
  readonly createdAt: number;
  /** The start of a name that Kubernetes made up. */
  readonly generateName?: string;
  /** The object that made this one and manages it. */
  readonly controller?: { readonly kind: string; readonly name: string };
  /** Set while Kubernetes is deleting the object. */
  readonly deleting?: true;
}

/** One object of the user's API after parsing and checking. Immutable, and compared by identity. */
export interface ConfigObject<Spec = unknown, Status = unknown> {
  /** Kind as in the API, such as `VirtualService`. */
  readonly kind: string;
  readonly metadata: Metadata;
  readonly spec: Spec;
  /** What others found out about the object; read for the kinds whose status the mesh acts upon, and only what it reads. */
  readonly status?: Status | undefined;
  readonly origin: Origin | undefined;
}

/** `kind/namespace/name`, for messages and as an index key. */
export function objectKey(object: ConfigObject): string {
  return `${object.kind}/${object.metadata.namespace}/${object.metadata.name}`;
}
