/** The addresses behind a host name, with the time that they hold. */
import { Resolver } from "node:dns/promises";
import type { Answer } from "../wanted-answers.ts";

/** Names are asked for again after this long at the soonest: each new address is a push to all proxies. */
const SHORTEST_MS = 30_000;
const LONGEST_MS = 3_600_000;
const TIMEOUT_MS = 5_000;
/** The name exists without an address of that family, or does not exist: an answer, not a failure. */
const NO_ADDRESS: ReadonlySet<string> = new Set(["ENODATA", "ENOTFOUND"]);

export interface NameServers {
  /** `address` or `address:port`; those of this machine when not given. */
  readonly servers?: readonly string[];
  readonly timeoutMs?: number;
}

/** Addresses of both families, sorted. Rejects when no name server answers for either family. */
export async function resolveName(
  name: string,
  signal: AbortSignal,
  { servers, timeoutMs = TIMEOUT_MS }: NameServers = {},
): Promise<Answer<readonly string[]>> {
  const resolver = new Resolver({ timeout: timeoutMs, tries: 1 });
  if (servers !== undefined) resolver.setServers(servers);
  const cancel = () => resolver.cancel();
  signal.addEventListener("abort", cancel, { once: true });
  try {
    const families = await Promise.allSettled([
      resolver.resolve4(name, { ttl: true }).catch(noneOrThrow),
      resolver.resolve6(name, { ttl: true }).catch(noneOrThrow),
    ]);
    const answered = families.filter((family) => family.status === "fulfilled");
    if (answered.length === 0) throw families.find((family) => family.status === "rejected")?.reason;
    const records = answered.flatMap(({ value }) => value);
    return { value: records.map(({ address }) => address).sort(), holdsMs: timeOf(records) };
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}

function noneOrThrow(thrown: NodeJS.ErrnoException): readonly [] {
  if (NO_ADDRESS.has(thrown.code ?? "")) return [];
  throw thrown;
}

function timeOf(records: readonly { readonly ttl: number }[]): number {
  if (records.length === 0) return SHORTEST_MS;
  const shortest = Math.min(...records.map(({ ttl }) => ttl * 1000));
  return Math.min(Math.max(shortest, SHORTEST_MS), LONGEST_MS);
}
