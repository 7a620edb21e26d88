import type { Layer, Versioned } from "#protocol/resource.ts";

/** By layer and the names left out of it, so that the same question gives the same layer. */
const made = new WeakMap<object, Map<string, unknown>>();

/** The layer without these names. */
export function omitting<R extends Versioned>(layer: Layer<R>, names: ReadonlySet<string>): Layer<R> {
  if (names.size === 0) return layer;
  const variants = made.get(layer) ?? new Map<string, unknown>();
  made.set(layer, variants);
  const key = [...names].sort().join("\n");
  const known = variants.get(key) as Layer<R> | undefined;
  if (known !== undefined) return known;
  const fresh: Layer<R> = {
    get: (name) => (names.has(name) ? undefined : layer.get(name)),
    keys: () => [...layer.keys()].filter((name) => !names.has(name)),
  };
  variants.set(key, fresh);
  return fresh;
}
