/** How a stream begins: who is calling, and which proxy it says it is. */

import type { ServerCall } from "#lib/grpc/server-call.ts";
import { STATUS } from "#lib/grpc/status.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { Caller } from "#model/ports.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import { parseProxyNode } from "#model/proxy/proxy-node.ts";
import { Refusal } from "./refusal.ts";

/** Who is calling; undefined where callers prove nothing, as on the plaintext port. Throws when the proof is bad. */
export type Authenticate = (call: ServerCall) => Promise<Caller | undefined>;

/** The caller of a stream; refused when its proof is bad. */
export async function authenticated(call: ServerCall, authenticate: Authenticate): Promise<Caller | undefined> {
  try {
    return await authenticate(call);
  } catch (cause) {
    throw new Refusal(STATUS.UNAUTHENTICATED, `Cannot authenticate: ${errorText(cause)}`, { cause });
  }
}

/**
 * The proxy that a first request introduces. If claims are checked, a caller that proved who it is can be no other workload, and the
 * proxy of one that proved nothing gets only what is public.
 */
export function introduced(
  node: Uint8Array | undefined,
  caller: Caller | undefined,
  identity: { readonly checked: boolean } = { checked: true },
): MeshProxy {
  const proxy = proxyIn(node);
  if (caller === undefined) return identity.checked ? { ...proxy, isUnproven: true } : proxy;
  if (identity.checked) checkIdentity(proxy, caller);
  return { ...proxy, verified: { namespace: caller.namespace, serviceAccount: caller.serviceAccount } };
}

function checkIdentity(proxy: MeshProxy, caller: Caller): void {
  const deny = (what: string, claimed: string) => {
    const message = `Cannot serve a proxy of ${what} "${claimed}": the caller is ${caller.identity}`;
    throw new Refusal(STATUS.PERMISSION_DENIED, message);
  };
  if (proxy.namespace !== caller.namespace) deny("namespace", proxy.namespace);
  const { serviceAccount } = proxy;
  if (serviceAccount !== "" && serviceAccount !== caller.serviceAccount) deny("service account", serviceAccount);
}

function proxyIn(node: Uint8Array | undefined): MeshProxy {
  if (node === undefined) throw new Refusal(STATUS.INVALID_ARGUMENT, "The first request needs a node");
  const { value, problems } = parseProxyNode(node);
  if (value !== undefined) return value;
  throw new Refusal(STATUS.INVALID_ARGUMENT, problems.map(({ field, message }) => `${field} ${message}`).join("; "));
}
