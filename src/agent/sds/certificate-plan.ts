/** Where the workload's certificate comes from: files of another authority, or a CA that is asked. */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Logger } from "#lib/log/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { type Place, pathIn } from "../place.ts";
import type { IdentityConfig } from "./identity-config.ts";
import { hasCertificate, type MountedFiles } from "./workload-secrets.ts";

export interface CertificatePlan {
  /** Undefined when the files at the usual place are our own output. */
  readonly mounted: MountedFiles | undefined;
  /** Whether the CA has something to add. */
  readonly askCa: boolean;
}

export interface CertificatePlanInput {
  readonly config: IdentityConfig;
  readonly place: Place;
  /** A foreign SDS server gives the certificate. */
  readonly servedByOthers: boolean;
  readonly log: Logger;
}

/** Used by authorities that keep certificates in a Secret or on the disk of a virtual machine. */
const WELL_KNOWN = filesIn("./etc/certs", ["cert-chain.pem", "key.pem", "root-cert.pem"]);
const CREDENTIALS_FOLDER = "./var/run/secrets/workload-spiffe-credentials";
const SPIFFE_CREDENTIALS = filesIn(CREDENTIALS_FOLDER, ["cert-chain.pem", "key.pem", "root-cert.pem"]);
const GKE_CREDENTIALS = filesIn(CREDENTIALS_FOLDER, ["certificates.pem", "private_key.pem", "ca_certificates.pem"]);
const GKE_PROVIDER = "GkeWorkloadCertificate";

/** Throws when files that must be there are not, or two settings exclude each other. */
export function certificatePlan({ config, place, servedByOthers, log }: CertificatePlanInput): CertificatePlan {
  const at = (files: MountedFiles) => filesAt(place, files);
  const [wellKnown, spiffe, gke] = [at(WELL_KNOWN), at(SPIFFE_CREDENTIALS), at(GKE_CREDENTIALS)];
  const isGke = config.caProvider === GKE_PROVIDER;
  if (isGke && !allExist(gke)) throw unusable(`GKE workload certificate files (${pathsOf(gke)}) not present`);
  if (config.provisionedFolder !== "" && (config.fileMountedCerts || isGke))
    throw unusable("invalid options: PROV_CERT and FILE_MOUNTED_CERTS are mutually exclusive");
  const isSpiffe = allExist(spiffe);
  if (isSpiffe) log.info("workload certificate files detected, creating secret manager without caClient");
  const files = isSpiffe ? spiffe : isGke ? gke : wellKnown;
  const fromFilesOnly = isSpiffe || isGke || config.fileMountedCerts || servedByOthers;
  if (fromFilesOnly) log.info("Workload is using file mounted certificates. Skipping connecting to CA");
  const mounted = isOutput(files, pathIn(place, config.outputFolder)) ? undefined : files;
  return { mounted, askCa: !fromFilesOnly && !isComplete(mounted) };
}

/** Whether another authority has put the workload's certificate where no setting is needed to find it. */
export function bringsCredentials({ caProvider }: Pick<IdentityConfig, "caProvider">, place: Place): boolean {
  return caProvider === GKE_PROVIDER || allExist(filesAt(place, SPIFFE_CREDENTIALS));
}

function filesAt(place: Place, { certificate, key, roots }: MountedFiles): MountedFiles {
  return { certificate: pathIn(place, certificate), key: pathIn(place, key), roots: pathIn(place, roots) };
}

function filesIn(folder: string, [certificate = "", key = "", roots = ""]: readonly string[]): MountedFiles {
  return { certificate: join(folder, certificate), key: join(folder, key), roots: join(folder, roots) };
}

function pathsOf({ certificate, key, roots }: MountedFiles): string {
  return [certificate, key, roots].join(", ");
}

function allExist({ certificate, key, roots }: MountedFiles): boolean {
  return [certificate, key, roots].every((path) => existsSync(path));
}

function isComplete(files: MountedFiles | undefined): boolean {
  return files !== undefined && hasCertificate(files) && existsSync(files.roots);
}

/** What we write must not be taken for what another authority wrote, or it would never be renewed. */
function isOutput({ certificate }: MountedFiles, outputFolder: string): boolean {
  return outputFolder !== "" && resolve(dirname(certificate)) === resolve(outputFolder);
}

function unusable(message: string): MeshError {
  return new MeshError("IDENTITY_INVALID", message);
}
