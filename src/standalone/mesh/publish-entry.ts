import { isIPv4, isIPv6 } from "node:net";
import type { PublishEntry } from "./mesh.ts";

const SHAPE = /^(?:(?:\[([^\]]+)\]|([^:[\]]+)):)?(\d{1,5}):(\d{1,5})$/;

/** Reads `127.0.0.1:8080:80` (host address, host port, port inside); the address may be left out. Or says what is wrong. */
export function parsePublishEntry(text: string): PublishEntry | string {
  const match = SHAPE.exec(text);
  if (match === null) return `must be HOST_PORT:PORT or LOOPBACK_ADDRESS:HOST_PORT:PORT, not ${JSON.stringify(text)}`;
  const [, bracketed, plain, hostDigits, digits] = match;
  const host = bracketed ?? plain ?? "127.0.0.1";
  if (!isLoopback(host)) return `must be on a loopback address such as 127.0.0.1 or [::1], not ${JSON.stringify(host)}`;
  const [hostPort, port] = [Number(hostDigits), Number(digits)];
  if (hostPort > 65_535) return `has host port ${hostPort}: it must be at most 65535, or 0 for a free one`;
  if (port < 1 || port > 65_535) return `has port ${port}: it must be from 1 to 65535`;
  return { text, host, hostPort, port };
}

function isLoopback(host: string): boolean {
  return (isIPv4(host) && host.startsWith("127.")) || (isIPv6(host) && host === "::1");
}
