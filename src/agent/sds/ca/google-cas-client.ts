/** `google.cloud.security.privateca.v1`, Certificate Authority Service: CA_PROVIDER `GoogleCAS`, CA_ADDR is a CA pool. */
import { randomBytes } from "node:crypto";
import { readString } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import type { Sign, SignRequest } from "../sign.ts";
import { readChain } from "./ca-client.ts";
import { type CaClientInput, callCa, readAnswer } from "./ca-connection.ts";

const SERVICE = "/google.cloud.security.privateca.v1.CertificateAuthorityService";
/** The certificate gets the SPIFFE id of the caller, whatever the request says. */
const REFLECTED_SPIFFE = 2;
const PEM_KEY = 1;

/** `pool` is `projects/P/locations/L/caPools/POOL`. */
export function googleCasClient(input: CaClientInput, pool: string): Sign {
  const routing = (field: string) => ({ "x-goog-request-params": `${field}=${encodeURIComponent(pool)}` });
  return async (request, signal) => {
    const created = await callCa(input, {
      path: `${SERVICE}/CreateCertificate`,
      bytes: createCertificateRequest(request, pool),
      headers: routing("parent"),
      signal,
    });
    const fetched = await callCa(input, {
      path: `${SERVICE}/FetchCaCerts`,
      bytes: new MessageWriter().string(1, pool).finish(),
      headers: routing("ca_pool"),
      signal,
    });
    return { chain: readCertificate(created), roots: readRoots(fetched) };
  };
}

function createCertificateRequest({ csr, ttlSeconds }: SignRequest, pool: string): Uint8Array {
  const message = () => new MessageWriter();
  const subject = message().bytes(1, new Uint8Array()).finish();
  const usage = message()
    .bytes(1, message().varint(1, 1).varint(3, 1).finish()) // digital_signature, key_encipherment
    .bytes(2, message().varint(1, 1).varint(2, 1).finish()) // server_auth, client_auth
    .finish();
  // is_ca is an optional field: false is written, so that the extension says it
  const noCa = Uint8Array.of(0x08, 0x00);
  const x509 = message().bytes(1, usage).bytes(2, noCa).finish();
  const publicKey = message().bytes(1, Buffer.from(csr)).varint(2, PEM_KEY).finish();
  const certificate = message()
    .bytes(3, message().bytes(1, subject).bytes(2, x509).bytes(3, publicKey).finish())
    .bytes(5, message().varint(1, ttlSeconds).finish())
    .varint(7, REFLECTED_SPIFFE)
    .finish();
  return message()
    .string(1, pool)
    .string(2, `csr-workload-${randomBytes(4).toString("hex")}`)
    .bytes(3, certificate)
    .finish();
}

/** `Certificate`: the leaf, then its issuers up to the root. */
function readCertificate(bytes: Buffer): readonly string[] {
  const chain: string[] = [];
  readAnswer(bytes, {
    bytes: { 9: (leaf) => chain.unshift(readString(leaf)), 11: (issuer) => chain.push(readString(issuer)) },
  });
  return chain;
}

/** `FetchCaCertsResponse`: a chain for each CA of the pool, whose last certificate is its root. */
function readRoots(bytes: Buffer): readonly string[] {
  const roots = new Set<string>();
  readAnswer(bytes, {
    bytes: {
      1: (chain) => {
        const root = readChain(chain).at(-1);
        if (root !== undefined) roots.add(root);
      },
    },
  });
  return [...roots].sort();
}
