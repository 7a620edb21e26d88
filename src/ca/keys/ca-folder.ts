/**
 * The folder in which the authority's key and certificates lie, under the names of Istio's `cacerts`: plugged in by an
 * operator, or written by us on the first start and read on all later ones. Other processes find root-cert.pem there.
 * An operator's may also be a Secret of type kubernetes.io/tls, with the names that such a Secret has.
 */
import { existsSync } from "node:fs";
import { chmod, mkdtemp, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makeFolder } from "#lib/files/make-folder.ts";
import { MeshError } from "#lib/mesh-error.ts";
import type { CaFile, CaFiles } from "./signing-bundle.ts";

/** File by field; the key comes last, because it is written last. */
export const CA_FILE_NAMES: Readonly<Record<CaFile, string>> = {
  rootPem: "root-cert.pem",
  chainPem: "cert-chain.pem",
  certificatePem: "ca-cert.pem",
  keyPem: "ca-key.pem",
};
/** Of a Secret of type kubernetes.io/tls. It has no file for the chain: that is what its other two certificates make. */
const TLS_SECRET_NAMES = { rootPem: "ca.crt", certificatePem: "tls.crt", keyPem: "tls.key" };
/** All files by which an operator may say what to sign with. */
export const WATCHED_FILES: readonly string[] = [...Object.values(CA_FILE_NAMES), ...Object.values(TLS_SECRET_NAMES)];
/** Tells, as in Istio, that nobody plugged these files in. */
const GENERATED_MARK = "istio-generated";
/** Of private keys. */
export const SECRET_MODE = 0o600;
const PUBLIC_MODE = 0o644;
const FOLDER_MODE = 0o755;

/** Whether we made the files, so that they are ours to change. */
export function isOwnFolder(folder: string): boolean {
  return existsSync(join(folder, GENERATED_MARK)) && !hasTlsSecret(folder);
}

/** Whether any of the files is there. */
export async function hasCaFiles(folder: string): Promise<boolean> {
  const texts = await Promise.all(Object.values(CA_FILE_NAMES).map((name) => readIfThere(join(folder, name))));
  return hasTlsSecret(folder) || texts.some((text) => text !== undefined);
}

/** Its certificate alone tells, as in Istio; where it is, files under the other names do not count. */
function hasTlsSecret(folder: string): boolean {
  return existsSync(join(folder, TLS_SECRET_NAMES.certificatePem));
}

/** Makes the folder if it is not there. Whoever checks certificates of the mesh reads the root in it, also as another user. */
export async function makeCaFolder(folder: string): Promise<void> {
  try {
    if (makeFolder(folder)) await chmod(folder, FOLDER_MODE);
  } catch (cause) {
    throw unwritable(folder, cause);
  }
}

/** The files, or undefined when there is none of them. Some without the others are an error: nothing is guessed. */
export async function readCaFolder(folder: string): Promise<CaFiles | undefined> {
  if (hasTlsSecret(folder)) {
    const texts = await readAll(folder, TLS_SECRET_NAMES);
    const { certificatePem = "", keyPem = "", rootPem = "" } = texts ?? {};
    const chainPem = `${certificatePem}\n${rootPem}`;
    return { certificatePem, keyPem, rootPem, chainPem, names: { ...TLS_SECRET_NAMES, chainPem: "tls.crt" } };
  }
  const texts = await readAll(folder, CA_FILE_NAMES);
  if (texts === undefined) return undefined;
  const { certificatePem = "", keyPem = "", rootPem = "", chainPem = "" } = texts;
  return { certificatePem, keyPem, rootPem, chainPem };
}

/** Texts by field; undefined when none of the files is there. */
async function readAll(
  folder: string,
  names: Partial<Record<CaFile, string>>,
): Promise<Partial<Record<CaFile, string>> | undefined> {
  const entries = Object.entries(names);
  const texts = await Promise.all(entries.map(([, name]) => readIfThere(join(folder, name))));
  const missing = entries.filter((_, i) => texts[i] === undefined).map(([, name]) => name);
  if (missing.length === entries.length) return undefined;
  if (missing.length > 0) {
    throw new MeshError(
      "CA_FILES_INCOMPLETE",
      `the CA folder "${folder}" is incomplete: ${missing.join(", ")} missing; add it, or remove the other files to begin with a new root`,
    );
  }
  return Object.fromEntries(entries.map(([field], i) => [field, texts[i]]));
}

/**
 * Writes a generated CA. Everything is on disk in a folder aside before the first file gets its name, so that a crash
 * leaves either nothing or, between two renames, a folder that `readCaFolder` reports as incomplete.
 */
export async function writeCaFolder(folder: string, files: CaFiles): Promise<void> {
  await makeCaFolder(folder);
  try {
    const aside = await mkdtemp(join(folder, ".new-"));
    try {
      const contents = Object.entries(CA_FILE_NAMES).map(([field, name]) => [name, files[field as CaFile]] as const);
      for (const [name, text] of [[GENERATED_MARK, ""] as const, ...contents]) {
        await writeDurably(join(aside, name), text, name === CA_FILE_NAMES.keyPem ? SECRET_MODE : PUBLIC_MODE);
      }
      for (const name of [GENERATED_MARK, ...Object.values(CA_FILE_NAMES)]) {
        await rename(join(aside, name), join(folder, name));
      }
      await syncFolder(folder);
    } finally {
      await rm(aside, { recursive: true, force: true });
    }
  } catch (cause) {
    throw unwritable(folder, cause);
  }
}

function unwritable(folder: string, cause: unknown): MeshError {
  return new MeshError("CA_FOLDER_UNWRITABLE", `cannot keep the mesh's root in "${folder}" (ROOT_CA_DIR)`, { cause });
}

/** Puts a new text in the place of an old one; readers see either, whole. */
export async function replaceFile(file: string, text: string, mode: number = PUBLIC_MODE): Promise<void> {
  const aside = `${file}.new`;
  try {
    // What a crash left there.
    await rm(aside, { force: true });
    await writeDurably(aside, text, mode);
    await rename(aside, file);
    await syncFolder(dirname(file));
  } catch (cause) {
    throw new MeshError("CA_FOLDER_UNWRITABLE", `cannot write "${file}" (ROOT_CA_DIR)`, { cause });
  }
}

/** Undefined when there is no such file. */
export async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return undefined;
    throw new MeshError("CA_FILES_INVALID", `cannot read "${file}"`, { cause });
  }
}

async function writeDurably(file: string, text: string, mode: number): Promise<void> {
  const handle = await open(file, "wx", mode);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  // The mode given to open() is cut by the umask.
  await chmod(file, mode);
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
