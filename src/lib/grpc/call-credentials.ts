import type { ServerCall } from "./server-call.ts";

/** What the caller showed to prove who it is. */
export interface CallCredentials {
  /** Header `authorization`. */
  readonly authorization: string | undefined;
  /** DER of a client certificate; present only if TLS verified it. */
  readonly certificate: Uint8Array | undefined;
  /** Header `clusterid`: where the caller says it runs. */
  readonly clusterId?: string | undefined;
  /** Header `x-forwarded-client-cert`: whom a proxy before us has seen. */
  readonly forwarded?: string | undefined;
  /** `address:port` from which the call came. */
  readonly peer?: string | undefined;
}

/** Reads the credentials of a call. */
export function callCredentials(
  call: Pick<ServerCall, "values" | "certificate"> & { readonly peer?: string },
): CallCredentials {
  const values = call.values("authorization");
  return {
    // Of several the first token counts, as with istiod.
    authorization: values.find((value) => value.startsWith("Bearer ")) ?? values[0],
    certificate: call.certificate,
    clusterId: call.values("clusterid")[0],
    forwarded: call.values("x-forwarded-client-cert")[0],
    peer: call.peer,
  };
}
