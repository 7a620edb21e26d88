/** Kubernetes and Istio objects for a mesh that is up, beside those of its own files. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { readDocument, splitDocuments } from "#lib/yaml/read.ts";
import { readConfigFile } from "#sources/config-file.ts";
import { itemsOf, readObjects } from "#sources/document.ts";
import { askMesh } from "../control/ask.ts";
import type { AppliedObject } from "../control/protocol.ts";

/** A text with objects, and what it is called in messages. */
export interface ConfigText {
  readonly file: string;
  readonly text: string;
}

/** Adds the objects to a mesh or replaces them; answers with what became of each, after all proxies have them. */
export async function applyConfig(stateFolder: string, texts: readonly ConfigText[]): Promise<readonly string[]> {
  for (const each of texts) check(each);
  const apply = objectsIn(texts);
  const { changes } = await askMesh(stateFolder, { kind: "configure", apply, remove: [] });
  return changes;
}

/** Removes objects that were applied; only their kind, name and namespace count. */
export async function deleteConfig(stateFolder: string, texts: readonly ConfigText[]): Promise<readonly string[]> {
  const remove = objectsIn(texts).map(({ key }) => key);
  const { changes } = await askMesh(stateFolder, { kind: "configure", apply: [], remove });
  return changes;
}

/** Reads files, the files of folders, and with `-` the input. */
export async function readConfigTexts(paths: readonly string[], input: NodeJS.ReadableStream): Promise<ConfigText[]> {
  const texts = await Promise.all(
    paths.map(async (path) => (path === "-" ? [{ file: "input", text: await text(input) }] : readPath(path))),
  );
  return texts.flat();
}

async function readPath(path: string): Promise<ConfigText[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [{ file: path, text: await readFile(path, "utf8") }];
    const names = (await readdir(path)).filter((name) => /^[^.].*\.(ya?ml|json)$/.test(name)).sort();
    const files = names.map((name) => join(path, name));
    return await Promise.all(files.map(async (file) => ({ file, text: await readFile(file, "utf8") })));
  } catch (cause) {
    throw new MeshError("CONFIG_UNREADABLE", `Cannot read "${path}": ${errorText(cause)}`);
  }
}

/** What the control plane would refuse is said here, and nothing is changed. */
function check({ file, text: whole }: ConfigText): void {
  const { problems, notYet } = readConfigFile({ file, text: whole, previous: undefined });
  const wrong = problems
    .filter(({ severity }) => severity === "error")
    .map(({ object, field, message, origin }) => {
      const what = [object === "" ? "" : `${object}:`, field, message].filter((part) => part !== "").join(" ");
      return `${file}:${origin?.line ?? 1}: ${what}`;
    });
  const idle = notYet.map(({ kind, line }) => `${file}:${line}: kind "${kind}" has no effect yet`);
  const lines = [...wrong, ...idle];
  if (lines.length > 0) throw new MeshError("CONFIG_INVALID", lines.join("\n"));
}

/** The last one of a name counts, as if they had been applied one after the other. */
function objectsIn(texts: readonly ConfigText[]): readonly AppliedObject[] {
  const found = texts
    .flatMap(({ text: whole }) => splitDocuments(whole))
    .flatMap((part) => {
      const keys = readObjects(part.text).map(({ key }) => key);
      return itemsOf(readDocument(part.text).value ?? { kind: "List", items: [] }).flatMap(({ raw }, i) => {
        const key = keys[i] ?? "";
        return key === "" || typeof raw !== "object" || raw === null ? [] : [{ key, object: { ...raw } }];
      });
    });
  if (found.length === 0) {
    const names = texts.map(({ file }) => `"${file}"`).join(", ");
    throw new MeshError("CONFIG_INVALID", `There is no object in ${names === "" ? "no file" : names}`);
  }
  return [...new Map(found.map((item) => [item.key, item])).values()];
}
