import type { ServerCall } from "./server.ts";

/** What the caller showed to prove who it is. */
export interface CallCredentials {
  /** Header `authorization`. */
  readonly authorization: string | undefined;
  /** DER of a client certificate; present only if TLS verified it. */
  readonly certificate: Uint8Array | undefined;
  /** Header `clusterid`: where the caller says it runs. */
  readonly clusterId?: string | undefined;
}

/** Reads the credentials of a call. */
export function callCredentials(call: Pick<ServerCall, "values" | "certificate">): CallCredentials {
  const values = call.values("authorization");
  return {
    // Of several the first token counts, as with istiod.
    authorization: values.find((value) => value.startsWith("Bearer ")) ?? values[0],
    certificate: call.certificate,
    clusterId: call.values("clusterid")[0],
  };
}
