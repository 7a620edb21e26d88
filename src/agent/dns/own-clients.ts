/** Which clients are programs of this machine, or of the pod: those that ask from one of its own addresses. */
import type { Interfaces } from "../instance-addresses.ts";

/** Addresses come and go; they are looked up again at most this often. */
const LOOK_AGAIN_MS = 5_000;
const MAPPED_PREFIX = "::ffff:";

/** A test for addresses of clients. Loopback is always the machine's own. */
export function ownClients(interfaces: () => Interfaces, now = () => performance.now()): (address: string) => boolean {
  let own = new Set<string>();
  let lookedAt = Number.NEGATIVE_INFINITY;
  return (from) => {
    const address = unmapped(from);
    if (address.startsWith("127.") || address === "::1" || own.has(address)) return true;
    if (now() - lookedAt < LOOK_AGAIN_MS) return false;
    lookedAt = now();
    own = new Set(Object.values(interfaces()).flatMap((infos = []) => infos.map((info) => info.address)));
    return own.has(address);
  };
}

/** Without what a socket for both families, or an address of one link, adds. */
function unmapped(address: string): string {
  const [plain = ""] = (address.startsWith(MAPPED_PREFIX) ? address.slice(MAPPED_PREFIX.length) : address).split("%");
  return plain;
}
