/**
 * What an operator has revoked: `ca-crl.pem` beside the key of the mesh, followed. Proxies check every certificate by it, so a
 * file that is broken, or that says nothing of one of the CAs, would end all calls of the mesh: such a file is not passed on.
 */
import "reflect-metadata";
import type { X509Certificate } from "node:crypto";
import { join } from "node:path";
import { X509Crl, X509Certificate as X509Issuer } from "@peculiar/x509";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { parsePem } from "#lib/pki/pem.ts";
import type { PublishedText } from "#lib/published-text.ts";
import { readIfThere } from "../keys/ca-folder.ts";
import type { SigningBundle } from "../keys/signing-bundle.ts";
import { watchFiles } from "../keys/watch-files.ts";
import type { Authority } from "./authority.ts";

export interface RevocationsInput {
  readonly authority: Authority;
  /** Of the file. */
  readonly folder: string;
  readonly log: Logger;
  readonly intervalMs: number;
}

const FILE = "ca-crl.pem";
/** Envoy passes over blocks of any other. */
const LABEL = "X509 CRL";

/** The text of the file, empty where there is none. It has to be right at the start; later a wrong one leaves the former in use. */
export async function followRevocations(input: RevocationsInput, signal: AbortSignal): Promise<PublishedText> {
  const { authority, log, intervalMs } = input;
  const file = join(input.folder, FILE);
  const listeners = new Set<() => void>();
  const read = async () => {
    const now = (await readIfThere(file)) ?? "";
    await checkRevocations(now, authority.bundle);
    return now;
  };
  let text = await read();
  const readAgain = async () => {
    try {
      const now = await read();
      if (now === text) return;
      text = now;
    } catch (problem) {
      log.error(`changed ${FILE} is not used, the former one stays`, { file, reason: errorText(problem) });
      return;
    }
    log.info(`${FILE} was reloaded`, { file });
    for (const listener of listeners) listener();
  };
  watchFiles({ files: [file], intervalMs, onChange: () => void readAgain() }, signal);
  // Both may be replaced together, and the list be read while the CA that it is of is not there yet.
  signal.addEventListener(
    "abort",
    authority.onReplaced(() => void readAgain()),
  );
  const onText = (changed: () => void) => {
    listeners.add(changed);
    return () => listeners.delete(changed);
  };
  return { text: () => text, onText };
}

/** Throws unless there is a list of every CA from the signing one to its root: Envoy believes no chain of which one is missing. */
async function checkRevocations(text: string, { path }: SigningBundle): Promise<void> {
  if (text === "") return;
  const lists = parsePem(text)
    .filter(({ label }) => label === LABEL)
    .map(({ der }) => parseList(der));
  for (const issuer of path) {
    const signed = await Promise.all(lists.map((list) => isSignedBy(list, issuer)));
    if (signed.includes(true)) continue;
    const name = issuer.subject.replaceAll("\n", ", ");
    throw new MeshError("CA_FILES_INVALID", `${FILE} has no list that "${name}" has signed`);
  }
}

function parseList(der: Buffer): X509Crl {
  try {
    return new X509Crl(der);
  } catch (cause) {
    throw new MeshError("CA_FILES_INVALID", `a list in ${FILE} cannot be parsed`, { cause });
  }
}

function isSignedBy(list: X509Crl, issuer: X509Certificate): Promise<boolean> {
  return list.verify({ publicKey: new X509Issuer(issuer.raw) }).catch(() => false);
}
