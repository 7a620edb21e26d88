import "reflect-metadata";
import { SubjectAlternativeNameExtension, X509Certificate } from "@peculiar/x509";

/** URIs among the alternative names of a DER certificate. Read from its ASN.1: Node's text form can be forged by names with commas. */
export function certificateUris(der: Uint8Array): readonly string[] {
  const names = new X509Certificate(der).getExtension(SubjectAlternativeNameExtension)?.names.items ?? [];
  return names.filter((name) => name.type === "url").map((name) => name.value);
}
