/** What a DNS message asks, as far as it decides who answers it. */
import { decode } from "dns-packet";
import { DOMAIN } from "../plan/files.ts";
import { type HostTable, lookUp } from "./names.ts";

/** Names that no server outside could know: those of the mesh, of this machine and of its neighbours. */
const INSIDE = new RegExp(
  `(^|\\.)(${DOMAIN.replaceAll(".", "\\.")}|svc|localhost|local|internal|in-addr\\.arpa|ip6\\.arpa)$`,
);

/**
 * The name in a question, or the host that it is an alias of, that the fabric cannot answer and somebody outside might;
 * undefined for all others.
 */
export function outsideName(query: Buffer, table: HostTable): string | undefined {
  const { names, values } = lookUp(table, askedName(query) ?? "");
  const name = names.at(-1) ?? "";
  if (!name.includes(".") || INSIDE.test(name)) return undefined;
  return values === undefined && !isInNamespace(name, table) ? name : undefined;
}

/** `service.namespace`, of a service that is not there: search domains make a whole name of it. */
function isInNamespace(name: string, table: HostTable): boolean {
  const [, namespace, more] = name.split(".");
  return more === undefined && [...table.keys()].some((host) => host.endsWith(`.${namespace}.svc.${DOMAIN}`));
}

function askedName(query: Buffer): string | undefined {
  try {
    const { type, questions = [] } = decode(query);
    return type === "query" ? questions[0]?.name : undefined;
  } catch {
    // Anybody may send anything to a port: what is not DNS is no event.
    return undefined;
  }
}
