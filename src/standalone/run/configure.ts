/** Objects that are added to the configuration of a running mesh: one file each, in a folder that goes with the mesh. */
import { createHash } from "node:crypto";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { objectKey } from "#config/schema/config-object.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { SILENT } from "#lib/log/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import { fileSource } from "#sources/file/file-source.ts";
import type { AppliedObject, ConfigureRequest } from "../control/protocol.ts";
import { writeAtomically } from "../host/write-files.ts";
import type { MeshRun } from "./mesh-run.ts";

/** Tells one version of an object from another: by it we see that the control plane has read it. */
const MARK = "mizzen.dev/applied";
/** How long proxies may take to acknowledge a change. */
const SYNC_TIMEOUT_MS = 10_000;

/** Adds, replaces and removes objects; answers with what became of each when all proxies know. */
export async function configure(run: MeshRun, { apply, remove }: ConfigureRequest): Promise<readonly string[]> {
  const { paths, config } = run.plan;
  const before = await readMarks(paths.applied);
  await checkOwn(config, apply);
  const unknown = remove.find((key) => !before.has(key));
  if (unknown !== undefined) {
    throw new MeshError("OBJECT_UNKNOWN", `Cannot delete ${unknown}: it was not applied${listOf(before)}`);
  }
  const after = new Map(apply.map((item) => [item.key, markOf(item)]));
  const changed = apply.filter(({ key }) => before.get(key) !== after.get(key));
  await Promise.all(changed.map((item) => write(paths.applied, item)));
  await Promise.all(remove.map((key) => rm(fileOf(paths.applied, key))));
  // No page shows Secrets, so that nobody can tell whether one was read.
  const mentioned = [...after].flatMap(([key, mark]) => (key.startsWith("Secret/") ? [] : [mark]));
  const forgotten = [...changed.map(({ key }) => key), ...remove].flatMap((key) => before.get(key) ?? []);
  if (!(await run.untilInSync(SYNC_TIMEOUT_MS, { mentioned, forgotten }))) throw unconfirmed();
  return [
    ...apply.map(({ key }) => `${key} ${verbOf(before.get(key), after.get(key))}`),
    ...remove.map((key) => `${key} deleted`),
  ];
}

function verbOf(before: string | undefined, after: string | undefined): string {
  if (before === undefined) return "created";
  return before === after ? "unchanged" : "changed";
}

function unconfirmed(): MeshError {
  return new MeshError(
    "CONFIG_UNCONFIRMED",
    `the change is made, but some proxies have not acknowledged it after ${SYNC_TIMEOUT_MS / 1000} s; see \`mizzen ps -w\` and \`mizzen logs istiod\``,
  );
}

/** An object of the mesh's own files would hide one of the same name, or be hidden by it. */
async function checkOwn(config: readonly string[], apply: readonly AppliedObject[]): Promise<void> {
  if (apply.length === 0) return;
  const source = fileSource({ folders: config, features: DEFAULT_FEATURES, log: SILENT });
  const read = new AbortController();
  source.subscribe(() => read.abort());
  await source.run(read.signal);
  const own = new Map(source.objects().map((object) => [objectKey(object), object.origin]));
  const taken = apply.find(({ key }) => own.has(key));
  if (taken === undefined) return;
  const origin = own.get(taken.key);
  const place = origin === undefined ? "the files of the mesh" : `${origin.file}:${origin.line}`;
  throw new MeshError(
    "OBJECT_TAKEN",
    `Cannot apply ${taken.key}: it is in ${place}; change it there, and it takes effect at once`,
  );
}

async function write(folder: string, item: AppliedObject): Promise<void> {
  const { metadata } = item.object;
  const own = isRecord(metadata) ? metadata : {};
  const annotations = { ...(isRecord(own.annotations) ? own.annotations : {}), [MARK]: markOf(item) };
  const text = JSON.stringify({ ...item.object, metadata: { ...own, annotations } }, undefined, 2);
  await writeAtomically({ path: fileOf(folder, item.key), text: `${text}\n`, mode: 0o644, owner: 0 });
}

function markOf({ key, object }: AppliedObject): string {
  return createHash("sha256")
    .update(JSON.stringify([key, object]))
    .digest("hex")
    .slice(0, 20);
}

/** Objects that are applied, by key, with the mark of their version. */
async function readMarks(folder: string): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(folder)).filter((name) => !name.startsWith("."));
  const marks = await Promise.all(
    names.map(async (name): Promise<[string, string]> => {
      const text = await readFile(join(folder, name), "utf8");
      const mark = new RegExp(`"${MARK}": "(\\w+)"`).exec(text)?.[1] ?? "";
      return [decodeURIComponent(name.replace(/\.yaml$/, "")), mark];
    }),
  );
  return new Map(marks);
}

function fileOf(folder: string, key: string): string {
  return join(folder, `${encodeURIComponent(key)}.yaml`);
}

function listOf(applied: ReadonlyMap<string, string>): string {
  return applied.size === 0 ? "; nothing was" : `; applied are ${[...applied.keys()].sort().join(", ")}`;
}
