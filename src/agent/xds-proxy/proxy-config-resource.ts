import { readMessage, readString } from "#lib/wire/read.ts";

/** `ca_certificates_pem` of an encoded `istio.mesh.v1alpha1.ProxyConfig`. Throws when the bytes are none. */
export function caCertificates(proxyConfig: Uint8Array): readonly string[] {
  const certificates: string[] = [];
  readMessage(proxyConfig, { bytes: { 34: (value) => void certificates.push(readString(value)) } });
  return certificates;
}
