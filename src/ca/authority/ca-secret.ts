/**
 * The Secret by which all replicas of a control plane in Kubernetes sign with the same key, under the names that Istio gives:
 * either can take over from the other. While a root makes way for the next one, that is in it too.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { isRecord } from "#lib/json/is-record.ts";
import { ApiError, type KubernetesApi, type RawObject } from "#lib/kubernetes/api-client.ts";
import { pathOf } from "#lib/kubernetes/resource-types.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { pemCertificates } from "#lib/pki/pem.ts";
import { CA_FILE_NAMES, readIfThere, replaceFile, SECRET_MODE, writeCaFolder } from "../keys/ca-folder.ts";
import { NEXT_CERTIFICATE, NEXT_KEY } from "../keys/next-root.ts";
import type { CaFiles } from "../keys/signing-bundle.ts";

/** Name of the Secret. */
export const CA_SECRET = "istio-ca-secret";
/** Where Secrets are. */
export const SECRETS = { group: "", version: "v1", kind: "Secret", plural: "secrets", namespaced: true };
const SECRET_TYPE = "istio.io/ca-root";
const NAMES: readonly string[] = [...Object.values(CA_FILE_NAMES), NEXT_CERTIFICATE, NEXT_KEY];

/** Texts by the name of their file; those that are not there are empty. */
export type CaCopy = Readonly<Record<string, string>>;

export interface CaSecretPlace {
  readonly api: Pick<KubernetesApi, "call">;
  /** Of the control plane. */
  readonly namespace: string;
}

/** The Secret; undefined when there is none. */
export async function readCaSecret({ api, namespace }: CaSecretPlace): Promise<RawObject | undefined> {
  try {
    return await api.call({ path: pathOf(SECRETS, { namespace, name: CA_SECRET }) });
  } catch (problem) {
    if (problem instanceof ApiError && problem.status === 404) return undefined;
    throw problem;
  }
}

/** Makes the Secret; one that somebody else made meanwhile is given instead. */
export async function createCaSecret(place: CaSecretPlace, copy: CaCopy): Promise<RawObject | undefined> {
  const { api, namespace } = place;
  const body = { ...secretOf(copy), metadata: { name: CA_SECRET, namespace } };
  try {
    return await api.call({ method: "POST", path: pathOf(SECRETS, { namespace }), body });
  } catch (problem) {
    if (problem instanceof ApiError && problem.status === 409) return readCaSecret(place);
    throw problem;
  }
}

/** Writes what it holds from now on; refused when it is not as it was any more. */
export async function replaceCaSecret({ api, namespace }: CaSecretPlace, before: RawObject, copy: CaCopy) {
  const body = { ...before, ...secretOf(copy) };
  await api.call({ method: "PUT", path: pathOf(SECRETS, { namespace, name: CA_SECRET }), body });
}

function secretOf(copy: CaCopy): object {
  const filled = Object.entries(copy).filter(([name, text]) => text !== "" || name === CA_FILE_NAMES.chainPem);
  const data = Object.fromEntries(filled.map(([name, text]) => [name, Buffer.from(text).toString("base64")]));
  return { apiVersion: "v1", kind: "Secret", type: SECRET_TYPE, data };
}

/** What a Secret holds. Istio leaves the roots out, or as they were when it replaces the certificate: that one is a root too. */
export function caCopyOf({ data }: RawObject): CaCopy {
  const textOf = (name: string) =>
    isRecord(data) && typeof data[name] === "string" ? Buffer.from(data[name], "base64").toString() : "";
  const copy = Object.fromEntries(NAMES.map((name) => [name, textOf(name)]));
  const { certificatePem, keyPem, chainPem, rootPem } = CA_FILE_NAMES;
  const missing = [certificatePem, keyPem].filter((name) => !copy[name]);
  if (missing.length > 0) {
    throw new MeshError("CA_FILES_INCOMPLETE", `Secret ${CA_SECRET} is incomplete: ${missing.join(", ")} missing`);
  }
  const [own = ""] = pemCertificates(copy[certificatePem] ?? "");
  const roots = pemCertificates(copy[rootPem] ?? "");
  const isRoot = copy[chainPem] === "" && !roots.includes(own);
  return isRoot ? { ...copy, [rootPem]: [own, ...roots].join("") } : copy;
}

/** The copy as what an authority signs with. */
export function caFilesOf(copy: CaCopy): CaFiles {
  const text = (field: keyof typeof CA_FILE_NAMES) => copy[CA_FILE_NAMES[field]] ?? "";
  return {
    keyPem: text("keyPem"),
    certificatePem: text("certificatePem"),
    chainPem: text("chainPem"),
    rootPem: text("rootPem"),
  };
}

/** What a new authority is shared as. */
export function caCopyOfFiles(files: CaFiles): CaCopy {
  const fields = Object.keys(CA_FILE_NAMES) as (keyof typeof CA_FILE_NAMES)[];
  return Object.fromEntries(fields.map((field) => [CA_FILE_NAMES[field], files[field]]));
}

/** True when both hold the same. */
export function isSameCopy(one: CaCopy, other: CaCopy): boolean {
  return NAMES.every((name) => (one[name] ?? "") === (other[name] ?? ""));
}

/** What is in the working copy. */
export async function readWorkingCopy(folder: string): Promise<CaCopy> {
  const texts = await Promise.all(NAMES.map(async (name) => [name, (await readIfThere(join(folder, name))) ?? ""]));
  return Object.fromEntries(texts);
}

/** Makes the working copy equal to what is shared. */
export async function writeWorkingCopy(folder: string, copy: CaCopy): Promise<void> {
  await writeCaFolder(folder, caFilesOf(copy));
  for (const name of [NEXT_KEY, NEXT_CERTIFICATE]) {
    const text = copy[name] ?? "";
    if (text === "") await rm(join(folder, name), { force: true });
    else await replaceFile(join(folder, name), text, name === NEXT_KEY ? SECRET_MODE : undefined);
  }
}
