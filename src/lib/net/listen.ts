import { MeshError } from "../mesh-error.ts";
import { formatListenAddress, type ListenAddress } from "./listen-address.ts";

export interface ListenInput {
  /** Where the address comes from, such as `--grpcAddr`: a person can change that. */
  readonly flag: string;
  readonly address: ListenAddress;
  /** Binds one concrete address and answers with its port. */
  readonly bind: (address: ListenAddress) => Promise<number>;
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use by another process",
  EACCES: "this user may not listen on that port",
  EADDRNOTAVAIL: "the machine has no such address",
  ENOTFOUND: "the host name does not resolve",
};

/** Listens and answers with the address that was taken. All addresses means IPv6 and IPv4, or IPv4 where IPv6 is off. */
export async function listen({ flag, address, bind }: ListenInput): Promise<ListenAddress> {
  const hosts = address.host === "" ? ["::", "0.0.0.0"] : [address.host];
  let failure: unknown;
  for (const host of hosts) {
    try {
      return { host, port: await bind({ host, port: address.port }) };
    } catch (error) {
      failure ??= error;
      if (!/EAFNOSUPPORT|EADDRNOTAVAIL/.test(String(error))) break;
    }
  }
  const wanted = formatListenAddress(address);
  const [, reason] = Object.entries(REASONS).find(([code]) => String(failure).includes(code)) ?? [];
  if (reason !== undefined) throw new MeshError("LISTEN_FAILED", `cannot listen on ${wanted} (${flag}): ${reason}`);
  throw new MeshError("LISTEN_FAILED", `cannot listen on ${wanted} (${flag})`, { cause: failure });
}
