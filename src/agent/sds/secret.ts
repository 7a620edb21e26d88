/** A secret under its name, as PEM. */
export type Secret = CertificateSecret | RootsSecret;

export interface CertificateSecret {
  readonly name: string;
  /** Leaf first. */
  readonly chain: string;
  readonly privateKey: string;
}

export interface RootsSecret {
  readonly name: string;
  readonly roots: string;
}

/** Where secrets of some names come from. */
export interface SecretSource {
  /** Whether secrets of this name come from here. */
  owns(name: string): boolean;
  /** Calls back with the secret as soon as it is there, and again each time it changes. Returns the way to stop. */
  watch(name: string, onSecret: (secret: Secret) => void): () => void;
}

/** The workload's certificate. */
export const WORKLOAD_SECRET = "default";
/** Whom the workload trusts. */
export const ROOT_SECRET = "ROOTCA";
/** What names begin with that say in which files a secret is: `file-root:ROOTS` and `file-cert:CERTIFICATE~KEY`. */
export const ROOT_FILES = "file-root:";
export const CERTIFICATE_FILES = "file-cert:";

/** Whether a name means files, rightly spelt or not. */
export function meansFiles(name: string): boolean {
  return name.startsWith(ROOT_FILES) || name.startsWith(CERTIFICATE_FILES);
}
