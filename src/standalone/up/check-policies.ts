/** Refuses security objects that nobody can read: in a mesh they would deny what they could have denied. */
import { readFile } from "node:fs/promises";
import { mentionsPolicy } from "#config/kinds/unreadable-policy.ts";
import { objectKey } from "#config/schema/config-object.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { readConfigFile } from "#sources/config-file.ts";
import { scanPaths } from "#sources/file/scan.ts";
import { isOfRevision } from "#sources/object-table.ts";
import { formatProblem } from "#sources/report.ts";

/** The control plane of a mesh on one machine has no other. */
const REVISION = "default";

/** Reads the files and folders of a mesh. What is wrong with other objects does not matter here. */
export async function checkPolicies(paths: readonly string[]): Promise<void> {
  const { files } = await scanPaths(paths);
  const lines: string[] = [];
  for (const file of [...files.keys()].sort()) {
    const text = await readFile(file, "utf8");
    if (mentionsPolicy(text)) lines.push(...problemsOf(file, text));
  }
  if (lines.length > 0) throw new MeshError("CONFIG_INVALID", lines.join("\n"));
}

function problemsOf(file: string, text: string): readonly string[] {
  const { unreadable, problems } = readConfigFile({ file, text, previous: undefined });
  const keys = new Set(unreadable.filter((policy) => isOfRevision(policy, REVISION)).map(objectKey));
  if (keys.size === 0) return [];
  // A text that is not YAML has problems of no object.
  const wrong = problems.filter(({ object, severity }) => severity === "error" && (object === "" || keys.has(object)));
  return wrong.map(formatProblem);
}
