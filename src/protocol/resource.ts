/** Anything that has a name and changes with its version. */
export interface Versioned {
  readonly name: string;
  readonly version: string;
}

/** A resource as it is sent. */
export interface Resource extends Versioned {
  /** The encoded message. */
  readonly value: Uint8Array;
  /**
   * On a cluster: the endpoints that Envoy asks for because of it, by name. Until it has them the cluster is warming, and
   * Envoy answers calls that are routed to it with 503.
   */
  readonly awaits: string | undefined;
  /** What to send to a proxy that rejects it, where there is a form of it that is likely to be taken. */
  readonly fallback?: () => this | undefined;
}

/**
 * Resources by name. The resources of one type are a few layers with disjoint names (outbound, inbound), each of them
 * shared by all proxies that have that part in common. A layer does not change what it holds: newer resources are in a
 * newer layer, so proxies that have the same layer have the same resources.
 */
export interface Layer<R extends Versioned> {
  get(name: string): R | undefined;
  keys(): Iterable<string>;
}

export type Layers<R extends Versioned> = readonly Layer<R>[];

/** The resource of that name in whatever layer it is. */
export function findResource<R extends Versioned>(layers: Layers<R>, name: string): R | undefined {
  for (const layer of layers) {
    const found = layer.get(name);
    if (found !== undefined) return found;
  }
  return undefined;
}
