import { readFile } from "node:fs/promises";
import { MeshError } from "#lib/mesh-error.ts";
import { readCaFolder } from "./ca-folder.ts";
import { type SigningBundle, signingBundle } from "./signing-bundle.ts";

/** Where the authority's files are. */
export interface CaLocation {
  readonly folder: string;
  /** Holds the passphrase of the private keys; without it they are not encrypted. */
  readonly passphraseFile?: string | undefined;
}

/** Reads and checks what the authority signs with. */
export async function loadBundle({ folder, passphraseFile }: CaLocation, now: number): Promise<SigningBundle> {
  const files = await readCaFolder(folder);
  if (files === undefined) throw new MeshError("CA_FILES_INCOMPLETE", `the CA folder "${folder}" is empty`);
  const passphrase = await readPassphrase(passphraseFile);
  try {
    return signingBundle({ ...files, passphrase }, now);
  } catch (cause) {
    throw new MeshError("CA_FILES_INVALID", `cannot sign with the files in "${folder}" (ROOT_CA_DIR)`, { cause });
  }
}

/** The first line of the file; an empty one is an error, since keys would lie there open although somebody cared. */
export async function readPassphrase(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw new MeshError("CA_PASSPHRASE_UNREADABLE", `cannot read "${file}" (CA_KEY_PASSPHRASE_FILE)`, { cause });
  }
  const [passphrase = ""] = text.split(/\r?\n/, 1);
  if (passphrase !== "") return passphrase;
  throw new MeshError("CA_PASSPHRASE_UNREADABLE", `"${file}" (CA_KEY_PASSPHRASE_FILE) begins with an empty line`);
}
