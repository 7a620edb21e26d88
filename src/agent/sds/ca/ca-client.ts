/** `istio.v1.auth.IstioCertificateService`, the certificate authority of the mesh: CA_PROVIDER `Citadel`. */
import { readString } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import type { Sign, SignRequest } from "../sign.ts";
import { type CaClientInput, callCa, readAnswer } from "./ca-connection.ts";

const CREATE_CERTIFICATE = "/istio.v1.auth.IstioCertificateService/CreateCertificate";

/** `certSigner` is ISTIO_META_CERT_SIGNER, for a CA that has several. */
export function citadelClient(input: CaClientInput, certSigner: string): Sign {
  return async (request, signal) => {
    const bytes = formatRequest(request, certSigner);
    return { chain: readChain(await callCa(input, { path: CREATE_CERTIFICATE, bytes, signal })) };
  };
}

function formatRequest({ csr, ttlSeconds }: SignRequest, certSigner: string): Uint8Array {
  // google.protobuf.Struct: one entry "CertSigner" whose value is a string
  const value = new MessageWriter().bytes(3, Buffer.from(certSigner)).finish();
  const entry = new MessageWriter().string(1, "CertSigner").bytes(2, value).finish();
  const metadata = new MessageWriter().bytes(1, entry).finish();
  return new MessageWriter().string(1, csr).varint(3, ttlSeconds).bytes(4, metadata).finish();
}

/** `repeated string cert_chain = 1` of the response. */
export function readChain(bytes: Uint8Array): readonly string[] {
  const chain: string[] = [];
  readAnswer(bytes, { bytes: { 1: (certificate) => chain.push(readString(certificate)) } });
  return chain;
}
