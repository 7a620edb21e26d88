/**
 * A file with the root certificates of a server, in PEM form. It is looked at before Envoy starts, without Node's crypto,
 * which takes milliseconds to load, and read for each connection.
 */
import { readFileSync } from "node:fs";
import { MeshError } from "#lib/mesh-error.ts";

const BLOCK = /^-----BEGIN CERTIFICATE-----[ \t]*\r?\n([A-Za-z0-9+/=\s]+)^-----END CERTIFICATE-----/gm;
/** In DER, what a certificate begins with. */
const SEQUENCE = 0x30;

/** The PEM blocks of a file that look like certificates. Throws when there is none: `what` says whose roots they are. */
export function readRootFile(what: string, file: string): readonly string[] {
  const blocks = [...readText(what, file).matchAll(BLOCK)].filter(([, base64 = ""]) =>
    isSequence(Buffer.from(base64, "base64")),
  );
  if (blocks.length > 0) return blocks.map(([block]) => block);
  throw noCertificate(what, file);
}

export function noCertificate(what: string, file: string): MeshError {
  return new MeshError(
    "ROOT_CERTIFICATE_UNREADABLE",
    `root CA file for ${what} ${file} holds no certificate in PEM form`,
  );
}

function readText(what: string, file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch (cause) {
    throw new MeshError("ROOT_CERTIFICATE_UNREADABLE", `root CA file for ${what} cannot be read`, { cause });
  }
}

/** One value that is as long as it says. */
function isSequence(der: Buffer): boolean {
  const [kind, first = 0] = der;
  if (kind !== SEQUENCE) return false;
  if (first < 0x80) return der.length === 2 + first;
  const lengthBytes = first & 0x7f;
  if (lengthBytes < 1 || lengthBytes > 4 || der.length < 2 + lengthBytes) return false;
  return der.length === 2 + lengthBytes + der.readUIntBE(2, lengthBytes);
}
