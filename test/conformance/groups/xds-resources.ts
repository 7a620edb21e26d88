/** Every resource that was recorded parses with our descriptors, and nothing of it is lost on the way through bytes. */
import { glob } from "node:fs/promises";
import { join } from "node:path";
import { compareJson, firstOf } from "../compare.ts";
import { type Case, type Group, readJson } from "../harness.ts";
import { messageType, parseResource, RESOURCE_TYPES, throughBytes, withoutType } from "../resources.ts";

export const xdsResources: Group = {
  name: "xds resources",
  cases: async (folder) => {
    const root = join(folder, "pilot/xds-golden");
    const objects = new Map<string, string>();
    for await (const file of glob("*/*.json", { cwd: root })) {
      for (const [path, kind] of recordedObjects(await readJson(root, file))) objects.set(join(file, "..", path), kind);
    }
    return [...objects].sort().map(([path, kind]) => objectCase(root, path, kind));
  },
};

function objectCase(root: string, path: string, kind: string): Case {
  return {
    name: `${path} (${kind})`,
    check: async () => {
      const type = messageType(RESOURCE_TYPES[kind] ?? kind);
      const resources = ((await readJson<readonly unknown[]>(root, path)) ?? []).map(withoutType);
      return firstOf(resources.map((json) => compareJson(throughBytes(type, parseResource(type, json)), json)));
    },
  };
}

interface CaseFile {
  /** One object with all resources of `kind`, or an object per kind. */
  readonly recorded?: string | Readonly<Record<string, string>>;
  readonly kind?: string;
  readonly proxies?: Readonly<Record<string, CaseFile>>;
}

/** Files of resources that a case names, with the kind of what is in them. */
function recordedObjects(file: CaseFile | undefined): readonly (readonly [string, string])[] {
  const { recorded = {}, kind = "", proxies = {} } = file ?? {};
  const own =
    typeof recorded === "string"
      ? [[recorded, kind] as const]
      : Object.entries(recorded).map(([k, path]) => [path, k] as const);
  return [...own, ...Object.values(proxies).flatMap(recordedObjects)];
}
