/**
 * Who is calling. Each authenticator looks at one kind of credential; the chain takes the first that proves an identity
 * and otherwise says, for each, why not.
 */
import type { Caller } from "#model/ports.ts";

/** What a caller showed, whatever the transport. */
export interface Credentials {
  /** Header `authorization`. */
  readonly authorization: string | undefined;
  /** DER of the client certificate, only if TLS verified it against the roots of the mesh. */
  readonly certificate: Uint8Array | undefined;
  /** Where the caller says it runs; its token is of that cluster then. */
  readonly clusterId?: string | undefined;
  /** Header `x-forwarded-client-cert`: whom a proxy before us has seen. */
  readonly forwarded?: string | undefined;
  /** `address:port` from which the call came, as `ServerCall` has it. */
  readonly peer?: string | undefined;
}

/** Either the caller, or the reason in one line. */
export type Authentication = { readonly caller: Caller } | { readonly refused: string };

/** Answers undefined when the credential it looks at is not there. */
export type Authenticator = (credentials: Credentials) => Promise<Authentication | undefined>;

/** Asks each in turn. */
export function authenticatorChain(
  authenticators: readonly Authenticator[],
): (credentials: Credentials) => Promise<Authentication> {
  return async (credentials) => {
    const reasons: string[] = [];
    for (const authenticate of authenticators) {
      const result = await authenticate(credentials);
      if (result === undefined) continue;
      if ("caller" in result) return result;
      reasons.push(result.refused);
    }
    return {
      refused: reasons.length > 0 ? reasons.join("; ") : "no bearer token and no client certificate of the mesh",
    };
  };
}
