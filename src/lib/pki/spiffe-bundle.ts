import { X509Certificate } from "node:crypto";
import { isRecord } from "../json/is-record.ts";

/**
 * The roots of a SPIFFE bundle (a JSON Web Key Set in which keys of use `x509-svid` carry one certificate each), as PEM.
 * Throws when the text is none, or a root in it is no CA certificate: a bundle counts as a whole.
 */
export function parseSpiffeBundle(text: string): readonly string[] {
  const bundle: unknown = JSON.parse(text);
  const keys = isRecord(bundle) && Array.isArray(bundle.keys) ? bundle.keys : [];
  const roots = keys.filter((key) => isRecord(key) && key.use === "x509-svid").map(rootOf);
  if (roots.length === 0) throw new Error("the bundle has no key for x509-svid");
  return roots;
}

function rootOf({ x5c }: { readonly x5c?: unknown }, index: number): string {
  const [only] = Array.isArray(x5c) ? x5c : [];
  if (!Array.isArray(x5c) || x5c.length !== 1 || typeof only !== "string") {
    throw new Error(`key ${index} for x509-svid of the bundle has not one certificate`);
  }
  const certificate = new X509Certificate(Buffer.from(only, "base64"));
  if (!certificate.ca) throw new Error(`key ${index} for x509-svid of the bundle is no CA certificate`);
  return certificate.toString();
}
