/**
 * The resources that a stream should have from now on, by type. Most streams of a push have the same parts, ask for the same types
 * and want nothing else: for all of these they are looked up once.
 */
import { hasSameItems } from "#lib/collections/same-items.ts";
import { CLUSTER_TYPE, LISTENER_TYPE, NAME_TABLE_TYPE, ROUTE_TYPE } from "#protocol/messages/type-urls.ts";
import type { Layers } from "#protocol/resource.ts";
import type { Targets } from "#protocol/shared-steps.ts";
import type { AskedState, Catalogue } from "../parts/catalogue.ts";
import type { ProxyParts } from "../parts/parts.ts";
import type { BuiltResource } from "../resources/built-resource.ts";
import { omitting } from "../resources/omitting-layer.ts";
import type { XdsStream } from "../stream/xds-stream.ts";

/**
 * When types become new: those of a round together, so that all are of the same snapshot; the others, endpoints above all, at any
 * time.
 */
export type Turn = "early" | "round";

/** Parts of a proxy, at a version of the world. */
export interface Aim {
  readonly parts: ProxyParts;
  readonly world: Pick<AskedState, "version" | "snapshot">;
}

/** For streams that ask for these types, and for nothing that they do not have yet. */
interface Found {
  readonly version: number;
  readonly typeUrls: readonly string[];
  readonly targets: Targets<BuiltResource>;
}

const ROUND: ReadonlySet<string> = new Set([CLUSTER_TYPE, LISTENER_TYPE, ROUTE_TYPE]);
const NO_NAMES: ReadonlySet<string> = new Set();

export class TargetFinder {
  readonly #catalogue: Catalogue;
  readonly #found = { early: new WeakMap<ProxyParts, Found>(), round: new WeakMap<ProxyParts, Found>() };

  constructor(catalogue: Catalogue) {
    this.#catalogue = catalogue;
  }

  /** Undefined where something has to be built first. */
  ready(stream: XdsStream, aim: Aim, turn: Turn): Targets<BuiltResource> | undefined {
    if (stream.asksForMore) return this.#lookUp(stream, aim, turn);
    const { parts, world } = aim;
    const typeUrls = stream.session.types.keys();
    const known = this.#found[turn].get(parts);
    if (known?.version === world.version && hasSameItems(known.typeUrls, typeUrls)) return known.targets;
    const targets = this.#lookUp(stream, aim, turn);
    if (targets !== undefined) this.#found[turn].set(parts, { version: world.version, typeUrls, targets });
    return targets;
  }

  /** The proxy may ask for more while we are at it. */
  async built(stream: XdsStream, { parts, world }: Aim, turn: Turn): Promise<Targets<BuiltResource>> {
    const built = new Map<string, Layers<BuiltResource>>();
    const missing = () =>
      stream.session.types.keys().find((typeUrl) => turnOf(stream, typeUrl) === turn && !built.has(typeUrl));
    for (let typeUrl = missing(); typeUrl !== undefined; typeUrl = missing()) {
      const names = soonDue(stream, typeUrl);
      built.set(typeUrl, forProxy(parts, typeUrl, await this.#catalogue.layers(parts, typeUrl, { ...world, names })));
    }
    return built;
  }

  #lookUp(stream: XdsStream, { parts, world }: Aim, turn: Turn): Targets<BuiltResource> | undefined {
    const found = new Map<string, Layers<BuiltResource>>();
    const { types } = stream.session;
    for (const typeUrl of types.keys()) {
      if (turnOf(stream, typeUrl) !== turn) continue;
      const names = soonDue(stream, typeUrl);
      const layers = this.#catalogue.readyLayers(parts, typeUrl, { ...world, names });
      if (layers === undefined) return undefined;
      found.set(typeUrl, forProxy(parts, typeUrl, layers));
    }
    return found;
  }
}

/** Names that are sent next. What is due after an answer that has not come is looked for then, however often the proxy asks until then. */
function soonDue({ session }: XdsStream, typeUrl: string): ReadonlySet<string> {
  const { pending, due } = session.types.get(typeUrl) ?? {};
  return pending === undefined ? (due ?? NO_NAMES) : NO_NAMES;
}

/** Whether it asked for clusters, listeners or routes for the first time. */
export function hasNewRound({ newTypes }: XdsStream): boolean {
  return newTypes.some((typeUrl) => ROUND.has(typeUrl));
}

/** A name of a newer snapshot than the routes leads nowhere; only the first table, which a start waits for, comes at once. */
function turnOf(stream: XdsStream, typeUrl: string): Turn {
  const isLaterTable = typeUrl === NAME_TABLE_TYPE && !stream.newTypes.includes(typeUrl);
  return ROUND.has(typeUrl) || isLaterTable ? "round" : "early";
}

/** Not all listeners of a part are for every proxy that has it. */
function forProxy(parts: ProxyParts, typeUrl: string, layers: Layers<BuiltResource>): Layers<BuiltResource> {
  const { omittedListeners } = parts;
  if (typeUrl !== LISTENER_TYPE || omittedListeners.size === 0) return layers;
  return layers.map((layer) => omitting(layer, omittedListeners));
}
