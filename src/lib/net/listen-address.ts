/** Addresses to listen on as Go programs write them in flags: `:15010`, `127.0.0.1:0`, `[::1]:8080`, or empty for none. */
import { isIPv6 } from "node:net";

export interface ListenAddress {
  /** Empty means all addresses of the machine. */
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
}

export type ParsedListenAddress =
  | { readonly kind: "off" }
  | ({ readonly kind: "on" } & ListenAddress)
  | { readonly kind: "wrong"; readonly reason: string };

const SHAPE = /^(?:\[([^\]]*)\]|([^:[\]\s]*)):(\d*)$/;

/** Reads an address; a host without a port is wrong, a port may be left empty to mean any. */
export function parseListenAddress(text: string): ParsedListenAddress {
  if (text === "") return { kind: "off" };
  const match = SHAPE.exec(text);
  if (match === null) {
    return { kind: "wrong", reason: `"${text}" is not an address to listen on: write :PORT, HOST:PORT or [IPv6]:PORT` };
  }
  const [, bracketed, plain = "", digits = ""] = match;
  const port = Number(digits);
  if (port > 65_535) return { kind: "wrong", reason: `"${text}" has port ${digits}: the highest is 65535` };
  if (bracketed !== undefined && !isIPv6(bracketed)) {
    return { kind: "wrong", reason: `"${text}" has no IPv6 address in its brackets` };
  }
  return { kind: "on", host: bracketed ?? plain, port };
}

/** `host:port` with brackets around IPv6. */
export function formatListenAddress({ host, port }: ListenAddress): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}
