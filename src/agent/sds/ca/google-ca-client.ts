/** `google.security.meshca.v1.MeshCertificateService`, the CA of Google's mesh: CA_PROVIDER `GoogleCA`. */
import { randomUUID } from "node:crypto";
import { MessageWriter } from "#lib/wire/write.ts";
import type { Sign } from "../sign.ts";
import { readChain } from "./ca-client.ts";
import { type CaClientInput, callCa } from "./ca-connection.ts";

const CREATE_CERTIFICATE = "/google.security.meshca.v1.MeshCertificateService/CreateCertificate";

/** `clusterUrl` names the zone that Google is to route the request to. */
export function googleCaClient(input: CaClientInput, clusterUrl: string): Sign {
  const zone = zoneOf(clusterUrl);
  const headers = zone === undefined ? {} : { "x-goog-request-params": `location=locations/${zone}` };
  return async ({ csr, ttlSeconds }, signal) => {
    const bytes = new MessageWriter()
      .string(1, randomUUID())
      .string(2, csr)
      .bytes(3, new MessageWriter().varint(1, ttlSeconds).finish())
      .finish();
    return { chain: readChain(await callCa(input, { path: CREATE_CERTIFICATE, bytes, headers, signal })) };
  };
}

/** `us-central1-c` of `.../projects/P/locations/us-central1-c/clusters/C`. */
export function zoneOf(clusterUrl: string): string | undefined {
  return /\/projects\/[^/]*\/locations\/([^/]*)\/clusters\//.exec(clusterUrl)?.[1];
}
