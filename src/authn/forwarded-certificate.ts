/** Callers whose certificate a trusted gateway has verified, and told of in a header. */
import { BlockList, isIP, isIPv6 } from "node:net";
import { parseSpiffeId, trustDomainInUri } from "#lib/pki/spiffe-id.ts";
import type { Authenticator } from "./authenticator.ts";

export interface TrustedGateways {
  /** Where they call from, such as `10.0.0.0/8`. Loopback is trusted beside them. */
  readonly ranges: readonly string[];
  /** Of the mesh, at any time. */
  readonly trustDomains: () => readonly string[];
}

/**
 * Believes `x-forwarded-client-cert` of trusted addresses. Of several hops the last one counts: that is the caller that the
 * gateway itself has seen, and what stands before it may be anybody's word.
 */
export function forwardedCertificateAuthenticator({ ranges, trustDomains }: TrustedGateways): Authenticator {
  const trusted = new BlockList();
  for (const range of ["127.0.0.0/8", "::1/128", ...ranges]) {
    const [net = "", prefix = ""] = range.split("/");
    trusted.addSubnet(net, Number(prefix), family(net));
  }
  return async ({ forwarded, peer = "" }) => {
    if (forwarded === undefined) return undefined;
    const address = addressOf(peer);
    if (isIP(address) === 0 || !trusted.check(address, family(address))) {
      return { refused: `x-forwarded-client-cert of "${address}" is not believed: it is no trusted gateway` };
    }
    const identity = lastUri(forwarded);
    const id = identity === undefined ? undefined : parseSpiffeId(identity);
    if (identity === undefined || id === undefined) {
      return { refused: "x-forwarded-client-cert does not tell of exactly one identity of a workload" };
    }
    const ours = trustDomains();
    if (!ours.some((domain) => trustDomainInUri(domain) === id.trustDomain)) {
      return {
        refused: `x-forwarded-client-cert is of trust domain "${id.trustDomain}", ours is "${ours.join('" or "')}"`,
      };
    }
    const { namespace, serviceAccount } = id;
    return { caller: { identity, namespace, serviceAccount, provedBy: "certificate" } };
  };
}

/** The one URI of the last hop. Hops are separated by commas, and fields of a hop by semicolons, unless quoted. */
function lastUri(header: string): string | undefined {
  const hops = split(header, ",");
  const fields = split(hops.at(-1) ?? "", ";").map((field) => /^(\w+)=(.*)$/s.exec(field.trim()));
  if (fields.includes(null)) return undefined;
  const uris = fields.flatMap((field) => (field?.[1]?.toLowerCase() === "uri" ? unquoted(field[2] ?? "") : []));
  return uris.length === 1 ? uris[0] : undefined;
}

function split(text: string, separator: "," | ";"): readonly string[] {
  const quoted = /"(?:[^"\\]|\\.)*"?/.source;
  const part = new RegExp(`(?:${quoted}|[^"${separator}])+`, "gs");
  return text.match(part) ?? [];
}

function unquoted(text: string): string {
  return /^".*"$/s.test(text) ? text.slice(1, -1).replace(/\\(.)/gs, "$1") : text;
}

/** `address` of `address:port` or `[address]:port`. */
function addressOf(peer: string): string {
  return peer.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
}

function family(address: string): "ipv4" | "ipv6" {
  return isIPv6(address) ? "ipv6" : "ipv4";
}
