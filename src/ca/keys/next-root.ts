/**
 * The root that is announced but does not sign yet, beside the files of the CA folder. Every step is one rename, and a
 * crash between two of them is either repeated by `rotationStep` or finished by `finishPromotion`.
 */
import { X509Certificate } from "node:crypto";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { pemCertificates } from "#lib/pki/pem.ts";
import { CA_FILE_NAMES, readIfThere, replaceFile, SECRET_MODE } from "./ca-folder.ts";
import type { CaFiles } from "./signing-bundle.ts";

/** File of the root that was announced. */
export const NEXT_CERTIFICATE = "next-ca-cert.pem";
/** File of its key. */
export const NEXT_KEY = "next-ca-key.pem";

/** The next root's certificate, if its key is there and root-cert.pem names it; else there was no announcement. */
export async function readNextRoot(folder: string): Promise<X509Certificate | undefined> {
  const [certificate, key, roots] = await Promise.all(
    [NEXT_CERTIFICATE, NEXT_KEY, CA_FILE_NAMES.rootPem].map((name) => readIfThere(join(folder, name))),
  );
  if (certificate === undefined || key === undefined) return undefined;
  return pemCertificates(roots ?? "").includes(certificate) ? new X509Certificate(certificate) : undefined;
}

/** Keeps the next root and lets it be trusted beside the others. */
export async function announceNextRoot(folder: string, next: CaFiles): Promise<void> {
  const roots = (await readIfThere(join(folder, CA_FILE_NAMES.rootPem))) ?? "";
  await replaceFile(join(folder, NEXT_KEY), next.keyPem, SECRET_MODE);
  await replaceFile(join(folder, NEXT_CERTIFICATE), next.certificatePem);
  await writeRoots(folder, [...pemCertificates(roots), next.certificatePem]);
}

/** From now on the announced root signs, and comes first among the roots. */
export async function promoteNextRoot(folder: string): Promise<void> {
  const next = (await readIfThere(join(folder, NEXT_CERTIFICATE))) ?? "";
  const roots = (await readIfThere(join(folder, CA_FILE_NAMES.rootPem))) ?? "";
  await writeRoots(folder, [next, ...pemCertificates(roots).filter((root) => root !== next)]);
  await replaceFile(join(folder, CA_FILE_NAMES.certificatePem), next);
  await finishPromotion(folder);
}

/** Gives the key its name when the certificate has it already; does nothing otherwise. */
export async function finishPromotion(folder: string): Promise<void> {
  const [next, current, key] = await Promise.all(
    [NEXT_CERTIFICATE, CA_FILE_NAMES.certificatePem, NEXT_KEY].map((name) => readIfThere(join(folder, name))),
  );
  if (next === undefined || next !== current) return;
  if (key !== undefined) await rename(join(folder, NEXT_KEY), join(folder, CA_FILE_NAMES.keyPem));
  await rm(join(folder, NEXT_CERTIFICATE));
}

/** Takes roots that have ended out of root-cert.pem; true if there were any beside living ones. */
export async function removeEndedRoots(folder: string, now: number): Promise<boolean> {
  const roots = pemCertificates((await readIfThere(join(folder, CA_FILE_NAMES.rootPem))) ?? "");
  const living = roots.filter((root) => new X509Certificate(root).validToDate.getTime() > now);
  if (living.length === 0 || living.length === roots.length) return false;
  await writeRoots(folder, living);
  return true;
}

function writeRoots(folder: string, roots: readonly string[]): Promise<void> {
  return replaceFile(join(folder, CA_FILE_NAMES.rootPem), roots.join(""));
}
