import { execFile } from "node:child_process";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isDeepStrictEqual, promisify } from "node:util";
import { makeFolder } from "#lib/files/make-folder.ts";
import { MeshError } from "#lib/mesh-error.ts";
import type { Bootstrap } from "./bootstrap.ts";
import { hashOf, knownText, readKnown } from "./extension-cache.ts";
import { doubtful, type SupportedBootstrap, supportedBootstrap } from "./supported.ts";

/** In the configuration folder: what is known of the Envoy at hand. */
const KNOWN_FILE = "envoy-extensions.json";

/** Writes a file as a whole or not at all; it and its folder are private to the agent's user. */
export async function writePrivately(path: string, text: string): Promise<void> {
  writeWhole(path, text, 0o600);
}

/** The same for a file that others may read as well: it holds no secrets, and the application needs it. */
export async function writeReadably(path: string, text: string): Promise<void> {
  writeWhole(path, text, 0o644);
}

function writeWhole(path: string, text: string, mode: number): void {
  const partial = `${path}.${process.pid}.tmp`;
  try {
    makeFolder(dirname(path), 0o700);
    writeFileSync(partial, text, { mode });
    renameSync(partial, path);
  } catch (cause) {
    removeIfPossible(partial);
    throw new MeshError("FILE_UNWRITABLE", `Cannot write ${path}`, { cause });
  }
}

function removeIfPossible(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // Where it could not be made it may not be removable either, and why it could not be made is what is told.
  }
}

/** Writes the bootstrap to a file in the configuration folder, without what the Envoy at hand lacks. */
export async function writeBootstrap(
  wanted: Bootstrap,
  {
    configPath,
    binaryPath,
    fileName = "envoy-rev.json",
  }: { readonly configPath: string; readonly binaryPath: string; readonly fileName?: string },
): Promise<SupportedBootstrap & { readonly path: string }> {
  const path = join(configPath, fileName);
  const write = (bootstrap: Bootstrap) => writePrivately(path, `${JSON.stringify(bootstrap, null, 2)}\n`);
  await write(wanted);
  if (doubtful(wanted).length === 0) return { bootstrap: wanted, removed: [], known: {}, path };
  const knownFile = join(configPath, KNOWN_FILE);
  const hash = await hashOf(binaryPath);
  const before = hash === undefined ? {} : await readKnown(knownFile, hash);
  const ask = async (bootstrap: Bootstrap) => {
    await write(bootstrap);
    return refusalOf(binaryPath, path);
  };
  const supported = await supportedBootstrap(wanted, ask, before);
  if (supported.removed.length > 0) await write(supported.bootstrap);
  if (hash !== undefined && !isDeepStrictEqual(before, supported.known)) {
    // What cannot be kept is asked for again.
    await writePrivately(knownFile, knownText(hash, supported.known)).catch(() => undefined);
  }
  return { ...supported, path };
}

/** What Envoy says against a bootstrap file; nothing when it accepts it, or cannot be asked: its start will tell. */
export async function refusalOf(binaryPath: string, path: string): Promise<string> {
  const args = [
    "--mode",
    "validate",
    "-c",
    path,
    "--allow-unknown-static-fields",
    "--disable-hot-restart",
    "-l",
    "error",
  ];
  try {
    await promisify(execFile)(binaryPath, args);
    return "";
  } catch (thrown) {
    return thrown instanceof Error && "stderr" in thrown ? String(thrown.stderr) : "";
  }
}
