/** Ports, addresses and paths of sockets. */
import { isIP } from "node:net";
import { error, type Problem } from "../schema/problem.ts";

/** What an address of a socket file starts with. */
export const UNIX_PREFIX = "unix://";

/** A port from 1 to 65535. */
export function* checkPort(port: number, at: string): Iterable<Problem> {
  if (port < 1 || port > 65535) yield error(at, `must be a port from 1 to 65535, not ${port}`);
}

/** An IPv4 or IPv6 address. */
export function* checkIpAddress(address: string, at: string): Iterable<Problem> {
  if (isIP(address) === 0) yield error(at, `must be an IP address, not "${address}"`);
}

/** An address, or a network such as `10.0.0.0/8`. */
export function* checkSubnet(subnet: string, at: string): Iterable<Problem> {
  const [address = "", bits, ...rest] = subnet.split("/");
  const most = isIP(address) === 4 ? 32 : 128;
  const isNetwork =
    bits !== undefined && /^(0|[1-9]\d{0,2})$/.test(bits) && Number(bits) <= most && !address.includes("%");
  if (rest.length > 0 || isIP(address) === 0 || !(bits === undefined || isNetwork)) {
    yield error(at, `must be an IP address or a network such as 10.0.0.0/8, not "${subnet}"`);
  }
}

/** The path of a socket file, or the name of an abstract socket, behind `unix://`. */
export function* checkUnixPath(path: string, at: string): Iterable<Problem> {
  if (path.startsWith("@")) return;
  if (!path.startsWith("/") || path.endsWith("/")) yield error(at, `must be an absolute path to a file, not "${path}"`);
}
