/** Objects of installations, for tests. */
import { join } from "node:path";
import { isRecord } from "#lib/json/is-record.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { objectName } from "./difference.ts";
import { manifestOf } from "./manifest.ts";
import { resolveSettings } from "./settings.ts";

export const MANIFESTS = join(import.meta.dirname, "../../manifests");

/** The objects for `--set`, without definitions of kinds, by `Kind/namespace/name`. */
export async function installed(...set: readonly string[]): Promise<ReadonlyMap<string, RawObject>> {
  const settings = await resolveSettings({ manifests: MANIFESTS, revision: "", files: [], set });
  const objects = manifestOf(settings).filter(({ kind }) => kind !== "CustomResourceDefinition");
  return new Map(objects.map((object) => [objectName(object), object]));
}

/** What is under a path of fields and indexes; items of lists also by their name. Undefined when there is nothing. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((inner, step) => {
    if (Array.isArray(inner)) {
      return typeof step === "number" ? inner[step] : inner.find((item) => isRecord(item) && item.name === step);
    }
    return isRecord(inner) ? inner[step] : undefined;
  }, value);
}
