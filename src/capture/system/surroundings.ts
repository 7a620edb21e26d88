/** What capture finds out by itself: address families, name servers, the proxy's account. */
import { readFile } from "node:fs/promises";
import { isIPv4, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { Family } from "../settings/rule.ts";
import { canonicalAddress, type Surroundings } from "../settings/settings.ts";
import type { Commands } from "./commands.ts";

export interface DetectInput {
  readonly commands: Commands;
  readonly dualStack: boolean;
  /** Name servers are wanted: DNS is captured by the addresses of /etc/resolv.conf. */
  readonly nameServers: boolean;
  /** Account that Envoy runs as. */
  readonly proxyUser: string;
  /** Folder that stands for `/`. */
  readonly root?: string;
}

const DEFAULT_PROXY_UID = "1337";

export async function detectSurroundings(input: DetectInput): Promise<Surroundings> {
  const root = input.root ?? "";
  const addresses = await localAddresses(input.commands);
  return {
    ipv6: wantsIpv6(addresses, input.dualStack),
    dnsServers: input.nameServers ? await readNameServers(`${root}/etc/resolv.conf`) : { v4: [], v6: [] },
    proxyUid: (await userId(`${root}/etc/passwd`, input.proxyUser)) ?? DEFAULT_PROXY_UID,
  };
}

/** IPv6 counts when there is no IPv4 address, or both are wanted. Loopback and link-local addresses say nothing. */
export function wantsIpv6(addresses: readonly string[], dualStack: boolean): boolean {
  const telling = addresses.filter((address) => !/^(loopback|linkLocal)$/.test(ipaddr.parse(address).range()));
  return telling.some(isIPv6) && (dualStack || !telling.some(isIPv4));
}

/** `nameserver` lines; addresses that make no sense are left out, as resolvers do. */
export function parseNameServers(text: string): Readonly<Record<Family, readonly string[]>> {
  const servers = text
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .flatMap(([word, address = ""]) => (word === "nameserver" && !address.includes("%") ? [address] : []));
  return {
    v4: servers.filter((address) => isIPv4(address)),
    v6: servers.filter((address) => isIPv6(address)).map(canonicalAddress),
  };
}

/** Addresses of all interfaces of the network namespace. */
export async function localAddresses(commands: Commands): Promise<readonly string[]> {
  const { code, stdout } = await commands.run("ip", ["-oneline", "address"]);
  // Without `ip` only IPv4 is captured; there is no better guess.
  if (code !== 0) return [];
  return [...stdout.matchAll(/ inet6? ([\da-f.:]+)/g)].map((match) => match[1] ?? "");
}

async function readNameServers(file: string): Promise<Readonly<Record<Family, readonly string[]>>> {
  try {
    return parseNameServers(await readFile(file, "utf8"));
  } catch (cause) {
    throw new MeshError("CAPTURE_FAILED", `Cannot read the name servers to capture from ${file}: ${errorText(cause)}`);
  }
}

async function userId(file: string, user: string): Promise<string | undefined> {
  // A machine without the file has no such user.
  const text = await readFile(file, "utf8").catch(() => "");
  const line = text.split("\n").find((one) => one.startsWith(`${user}:`));
  return line?.split(":")[2];
}
