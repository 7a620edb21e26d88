/** Who may look: programs on this machine at everything, others only with a proven identity and at their own namespace. */
import ipaddr from "ipaddr.js";
import type { Authentication, Credentials } from "#authn/authenticator.ts";
import { localRequestProblem, type RequestHeaders } from "#lib/net/local-request.ts";
import type { Scope } from "./pages/scope.ts";

export interface AccessOptions {
  readonly authenticate: (credentials: Credentials) => Promise<Authentication>;
  /** Whether callers of a namespace see all others too: those of the root namespace do, and whom an operator names. */
  readonly seesAll: (namespace: string) => boolean;
}

export interface AccessRequest {
  readonly remoteAddress: string | undefined;
  readonly headers: RequestHeaders & { readonly authorization?: string | undefined };
}

export type Access = { readonly scope: Scope } | { readonly refused: string };

/** Pages for callers of all namespaces, about proxies of their own; the others are for callers that see all, as with istiod. */
const PAGES_FOR_ALL: ReadonlySet<string> = new Set(["config_dump", "edsz", "ndsz"]);

/** Whether a caller may ask for the page of that name, such as `syncz`. */
export function mayAskFor(page: string, scope: Scope): boolean {
  return scope === undefined || PAGES_FOR_ALL.has(page);
}

/** What a request may see, or why nothing. */
export async function accessOf(request: AccessRequest, options: AccessOptions): Promise<Access> {
  const { remoteAddress, headers } = request;
  if (isLoopback(remoteAddress) && localRequestProblem(headers) === undefined) return { scope: undefined };
  const { authorization } = headers;
  const authentication = await options.authenticate({ authorization, certificate: undefined });
  if ("refused" in authentication) return authentication;
  const { namespace } = authentication.caller;
  return { scope: options.seesAll(namespace) ? undefined : namespace };
}

/** Whether a request comes from this machine. */
export function isLoopback(address: string | undefined): boolean {
  if (address === undefined || !ipaddr.isValid(address)) return false;
  // `process` also unwraps IPv4 addresses in their IPv6 form, as they appear on a socket for both.
  return ipaddr.process(address).range() === "loopback";
}
