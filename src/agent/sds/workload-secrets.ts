import { accessSync, statSync } from "node:fs";
import type { FileSecrets } from "./file-secrets.ts";
import { meansFiles, ROOT_SECRET, type RootsSecret, type Secret, type SecretSource } from "./secret.ts";
import type { TrustBundle } from "./trust-bundle.ts";
import type { WorkloadIdentity } from "./workload-identity.ts";

/** Where another authority puts the workload's certificate. */
export interface MountedFiles {
  readonly certificate: string;
  readonly key: string;
  readonly roots: string;
}

export interface WorkloadSecretsInput {
  /** Asks the CA; undefined when all comes from files. */
  readonly identity: Pick<WorkloadIdentity, "current" | "subscribe" | "renew" | "hurry"> | undefined;
  readonly files: FileSecrets;
  /** Undefined when they are our own output. */
  readonly mounted: MountedFiles | undefined;
  readonly trustBundle: TrustBundle;
}

/** The secrets of the workload itself. Files win over the CA, the certificate and the roots each for themselves. */
export function workloadSecrets({ identity, files, mounted, trustBundle }: WorkloadSecretsInput): SecretSource {
  trustBundle.subscribe(() => identity?.renew());
  const ownCertificate = (name: string, onSecret: (secret: Secret) => void): (() => void) => {
    if (mounted !== undefined && (identity === undefined || hasCertificate(mounted))) {
      const { certificate, key } = mounted;
      return files.follow(name, { certificate, key }, onSecret);
    }
    return fromCa(identity, name, onSecret);
  };
  const roots = (onSecret: (secret: Secret) => void): (() => void) => {
    if (mounted !== undefined && (identity === undefined || hasContent(mounted.roots)))
      return files.follow(ROOT_SECRET, { roots: mounted.roots }, onSecret);
    return fromCa(identity, ROOT_SECRET, onSecret);
  };
  return {
    // The workload has one certificate, whatever Envoy's configuration calls it; it never stands in for files.
    owns: (name) => !meansFiles(name),
    watch: (name, onSecret) =>
      name === ROOT_SECRET ? merged(roots, trustBundle, onSecret) : ownCertificate(name, onSecret),
  };
}

/** Whether the files hold a certificate, so that no CA need be asked for one. */
export function hasCertificate({ certificate, key }: Pick<MountedFiles, "certificate" | "key">): boolean {
  return hasContent(certificate) && hasContent(key);
}

function hasContent(file: string): boolean {
  try {
    accessSync(file);
    return statSync(file).size > 0;
  } catch {
    return false;
  }
}

function fromCa(
  identity: WorkloadSecretsInput["identity"],
  name: string,
  onSecret: (secret: Secret) => void,
): () => void {
  const send = (certificate = identity?.current) => {
    if (certificate === undefined) return;
    const { chain, privateKey, roots } = certificate;
    onSecret(name === ROOT_SECRET ? { name, roots } : { name, chain, privateKey });
  };
  send();
  identity?.hurry();
  const stop = identity?.subscribe(({ certificate, rootsChanged }) => {
    if (rootsChanged || name !== ROOT_SECRET) send(certificate);
  });
  return stop ?? (() => undefined);
}

/** Adds the roots of the trust bundle, and tells again when those change. */
function merged(
  watch: (onSecret: (secret: Secret) => void) => () => void,
  trustBundle: TrustBundle,
  onSecret: (secret: Secret) => void,
): () => void {
  let own: RootsSecret | undefined;
  const send = () => {
    if (own !== undefined) onSecret({ name: own.name, roots: trustBundle.merge(own.roots) });
  };
  const stop = watch((secret) => {
    if ("roots" in secret) own = secret;
    send();
  });
  const stopBundle = trustBundle.subscribe(send);
  return () => {
    stop();
    stopBundle();
  };
}
