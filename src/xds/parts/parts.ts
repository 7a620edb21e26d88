/**
 * What the configuration of a proxy is made of: parts that other proxies may have in common with it, each known by a key.
 * This is all the xDS server knows of translation.
 */
import { hash } from "node:crypto";
import type { Steps } from "#lib/async/steps.ts";
import { keptBy } from "#lib/collections/kept-by.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import type { Recipe } from "#translate/recipes/recipe.ts";

/** Recipes by type URL. */
export type PartPlan = ReadonlyMap<string, readonly Recipe[]>;

/** Some resources that belong together, of one or several types. Equal keys at one snapshot mean equal resources. */
export interface Part {
  readonly key: string;
  /** In steps: it can take longer than the event loop may be blocked. */
  plan(): Steps<PartPlan>;
  /** Whether the part of this key had the same plan at that snapshot. Where not given, it has to be planned to know. */
  isSameSince?(before: Snapshot): boolean;
}

/** Resources of which there are too many to list: planned by name when a proxy asks for them. */
export interface PartByName {
  readonly key: string;
  plan(name: string): Recipe | undefined;
  /** Tells the names whose plan may have been another at that snapshot. Where not given, that may be so for all. */
  changedSince?(before: Snapshot): (name: string) => boolean;
}

export interface ProxyParts {
  /** The parts that hold resources of a type, always in the same order. */
  readonly types: ReadonlyMap<string, readonly Part[]>;
  /** By type: those of which a proxy has only what it asks for. */
  readonly asked: ReadonlyMap<string, PartByName>;
  /** Listeners that are not for this proxy, though its part has them. */
  readonly omittedListeners: ReadonlySet<string>;
}

export type PartsOf = (snapshot: Snapshot, proxy: MeshProxy) => ProxyParts;

const viewIds = new WeakMap<ProxyParts, Map<string, string>>();

/** A short name for what a proxy has of a type: who has the same one has the same resources. */
export function viewId(parts: ProxyParts, typeUrl: string): string {
  return keptBy(viewIds, parts, typeUrl, () => hashOf(parts, typeUrl));
}

function hashOf(parts: ProxyParts, typeUrl: string): string {
  const asked = parts.asked.get(typeUrl);
  const keys = asked === undefined ? (parts.types.get(typeUrl) ?? []).map(({ key }) => key) : [asked.key];
  return hash("sha1", keys.join("\n"), "hex").slice(0, 8);
}
