/** PEM text as a list of blocks; `pem()` of der.ts writes one. */

export interface PemBlock {
  /** `CERTIFICATE`, `CERTIFICATE REQUEST`, `PRIVATE KEY` ... */
  readonly label: string;
  readonly der: Buffer;
  /** The block as text with one line end at its end, as it was written. */
  readonly pem: string;
}

// The body has no dash, so that a match never goes back: time stays linear in the text.
const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]+)-----END \1-----/g;

/** All blocks in the order of the text; what stands between them is skipped, as every PEM reader does. */
export function parsePem(text: string): readonly PemBlock[] {
  return [...text.matchAll(BLOCK)].map(([block, label = "", body = ""]) => ({
    label,
    der: Buffer.from(body, "base64"),
    pem: `${block}\n`,
  }));
}

/** The certificates among the blocks, each as PEM text of its own. */
export function pemCertificates(text: string): readonly string[] {
  return parsePem(text)
    .filter((block) => block.label === "CERTIFICATE")
    .map((block) => block.pem);
}
