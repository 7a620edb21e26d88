/**
 * Before the first proxy comes, what most proxies get is built, and it waits for them: after a restart all of them come at
 * once. Where they differ from what was expected, they still share most resources with it, and code that ran before is
 * several times faster than code that did not.
 */
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE } from "#protocol/messages/type-urls.ts";
import type { Clock } from "../timing/clock.ts";
import type { Catalogue } from "./catalogue.ts";
import type { PartsOf, ProxyParts } from "./parts.ts";

/** No start waits longer than this, but for the type that is just being built. */
const ENOUGH_MS = 1_000;
/** So long what was built waits for proxies. */
const KEPT_FOR_MS = 60_000;

export interface PreparationOptions {
  readonly catalogue: Catalogue;
  readonly partsOf: PartsOf;
  readonly clock: Clock;
}

/** A snapshot with the number of the push that it is of. */
interface Prepared {
  readonly snapshot: Snapshot;
  readonly version: number;
}

export class Preparation {
  readonly #options: PreparationOptions;
  #running: Promise<void> | undefined;
  #drop: () => void = () => undefined;

  constructor(options: PreparationOptions) {
    this.#options = options;
  }

  /** Ends with what is being prepared, and never fails; undefined where nothing is. */
  get running(): Promise<void> | undefined {
    return this.#running?.catch(() => undefined);
  }

  /** Builds what such a proxy would get. A failure leaves nothing behind. */
  async run(proxy: MeshProxy, at: Prepared): Promise<void> {
    this.drop();
    const { catalogue, partsOf, clock } = this.#options;
    const parts = partsOf(at.snapshot, proxy);
    catalogue.use(parts, undefined);
    const cancel = clock.after(KEPT_FOR_MS, () => this.drop());
    this.#drop = () => {
      cancel();
      catalogue.use(undefined, parts);
    };
    this.#running = this.#build(parts, at);
    try {
      await this.#running;
    } catch (thrown) {
      this.drop();
      throw thrown;
    } finally {
      this.#running = undefined;
    }
  }

  /** Forgets what no proxy has come for. */
  drop(): void {
    this.#drop();
    this.#drop = () => undefined;
  }

  /** All types, and endpoints for the clusters. */
  async #build(parts: ProxyParts, at: Prepared): Promise<void> {
    const { catalogue, clock } = this.#options;
    const enough = clock.now() + ENOUGH_MS;
    for (const typeUrl of parts.types.keys()) {
      const layers = await catalogue.layers(parts, typeUrl, { ...at, names: new Set() });
      if (typeUrl === CLUSTER_TYPE && parts.asked.has(ENDPOINT_TYPE)) {
        const names = new Set(layers.flatMap((layer) => [...layer.keys()]));
        await catalogue.layers(parts, ENDPOINT_TYPE, { ...at, names });
      }
      if (clock.now() > enough) return;
    }
  }
}
