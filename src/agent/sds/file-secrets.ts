/**
 * Secrets from files, for destinations outside the mesh. Their names say which files: `file-root:ROOTS` and
 * `file-cert:CERTIFICATE~KEY`. Files are looked at again and again, since they are replaced by renaming and by links.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { type Stats, unwatchFile, watchFile } from "node:fs";
import { readFile } from "node:fs/promises";
import type { Logger } from "#lib/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { certificateSecret, type EncodedSecret, rootsSecret } from "./messages.ts";
import type { SecretSource } from "./secret-source.ts";

/** What a name stands for. */
export type FileSecret = { readonly roots: string } | { readonly certificate: string; readonly key: string };

const ROOT_PREFIX = "file-root:";
const CERTIFICATE_PREFIX = "file-cert:";
const SEPARATOR = "~";
/** `file-root:system` is what the machine trusts. */
const SYSTEM_ROOTS = "/etc/ssl/certs/ca-certificates.crt";
const LOOK_EVERY_MS = 1_000;

/** Undefined when the name is not one of a secret in files. */
export function parseFileSecret(name: string): FileSecret | undefined {
  const parts = name.slice(ROOT_PREFIX.length).split(SEPARATOR);
  const [first = "", second = ""] = parts;
  if (name.startsWith(ROOT_PREFIX) && parts.length === 1) return { roots: first === "system" ? SYSTEM_ROOTS : first };
  if (name.startsWith(CERTIFICATE_PREFIX) && parts.length === 2) return { certificate: first, key: second };
  return undefined;
}

/** Reads a secret when it is asked for, and when one of its files changes. What cannot be read is told and not sent. */
export function fileSecrets(log: Logger, lookEveryMs = LOOK_EVERY_MS): SecretSource {
  return {
    owns: (name) => parseFileSecret(name) !== undefined,
    watch: (name, onSecret) => {
      const secret = parseFileSecret(name);
      if (secret === undefined) return () => undefined;
      let wanted = true;
      const send = () => {
        readSecret(name, secret)
          .then((encoded) => wanted && onSecret(encoded))
          .catch((thrown: unknown) => log.warn(`Secret ${name} cannot be sent: ${errorText(thrown)}`));
      };
      const onChange = (now: Stats, before: Stats) => {
        if (now.mtimeMs !== before.mtimeMs || now.ino !== before.ino) send();
      };
      const files = "roots" in secret ? [secret.roots] : [secret.certificate, secret.key];
      for (const file of files) watchFile(file, { interval: lookEveryMs, persistent: false }, onChange);
      send();
      return () => {
        wanted = false;
        for (const file of files) unwatchFile(file, onChange);
      };
    },
  };
}

async function readSecret(name: string, secret: FileSecret): Promise<EncodedSecret> {
  if ("roots" in secret) {
    const roots = await readFile(secret.roots, "utf8");
    if (!roots.includes("-----BEGIN CERTIFICATE-----"))
      throw new MeshError("SECRET_UNUSABLE", `${secret.roots} holds no certificate`);
    return rootsSecret(name, roots);
  }
  const chain = await readFile(secret.certificate, "utf8");
  const privateKey = await readFile(secret.key, "utf8");
  // While both are being replaced they do not fit for a moment; the next look finds them complete.
  if (!new X509Certificate(chain).checkPrivateKey(createPrivateKey(privateKey))) {
    throw new MeshError("SECRET_UNUSABLE", `${secret.key} is not the key of ${secret.certificate}`);
  }
  return certificateSecret(name, { chain, privateKey });
}
