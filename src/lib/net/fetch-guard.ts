/**
 * Configuration may name any server to fetch from, and answers of that server any other. Addresses that only this machine
 * or its network can reach must not be asked on their behalf. Names are checked when they are looked up for a connection,
 * so the check holds for the very address that is used.
 */
import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from "node:dns";
import { BlockList, isIP, isIPv6, type LookupFunction } from "node:net";
import { addressClass, embeddedIPv4 } from "./address-class.ts";
import { bareHost } from "./bare-host.ts";

export interface FetchGuardOptions {
  /** Local and private addresses are allowed. */
  readonly allowLocal: boolean;
  /** Ranges of private addresses that are allowed, such as `10.0.0.0/8`. */
  readonly allowedRanges: readonly string[];
  /** Ranges that are never allowed. */
  readonly blockedRanges: readonly string[];
  /** Names of services end with `.svc` and this: such a server may have a private address if configuration itself names one. */
  readonly clusterDomain: string;
  /** Whether the server of a URL may be anywhere. */
  readonly isTrusted?: (url: URL) => boolean;
  /** Looks names up; the system's way by default. */
  readonly lookup?: Lookup;
  /** The error for a host, and what is wrong with it. */
  readonly refusal: (host: string, reason: string) => Error;
}

type Lookup = (
  hostname: string,
  options: LookupOptions & { readonly all: true },
  done: (error: Error | null, addresses: LookupAddress[]) => void,
) => void;

const METADATA_NAMES: ReadonlySet<string> = new Set(["metadata.google.internal", "metadata.goog", "metadata"]);
const LOCAL = "a local address (loopback, link-local, multicast or a cloud's metadata server)";
const PRIVATE = "a private address";

export class FetchGuard {
  readonly #options: FetchGuardOptions;
  readonly #allowed: BlockList;
  readonly #blocked: BlockList;
  readonly #startsInCluster: boolean;

  /** Guards the requests that fetch `start`, which configuration names. */
  constructor(start: URL, options: FetchGuardOptions) {
    this.#options = options;
    this.#allowed = listOf(options.allowedRanges);
    this.#blocked = listOf(options.blockedRanges);
    this.#startsInCluster = this.#isService(start);
  }

  /** Throws when a URL leads, without asking DNS, to an address that is not allowed. */
  check(url: URL): void {
    const host = bareHost(url);
    const reason = isIP(host) === 0 ? this.#problemOfName(url) : this.#problemOf(host, url);
    if (reason !== undefined) throw this.#options.refusal(host, reason);
  }

  /** Looks up names for connections to a URL, and fails for those that lead to an address that is not allowed. */
  lookupFor(url: URL): LookupFunction {
    const { lookup = dnsLookup, refusal } = this.#options;
    return (hostname, options: LookupOptions, callback) => {
      lookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
        const [first] = addresses ?? [];
        if (error !== null || first === undefined) {
          callback(error ?? new Error(`${hostname} has no address`), []);
          return;
        }
        const reasons = addresses.map(({ address }) => this.#problemOf(address, url));
        const reason = reasons.find((problem) => problem !== undefined);
        if (reason !== undefined) callback(refusal(hostname, reason), []);
        else if (options.all === true) callback(null, addresses);
        else callback(null, first.address, first.family);
      });
    };
  }

  #problemOfName(url: URL): string | undefined {
    const host = bareHost(url);
    const isLocal = host === "localhost" || host.endsWith(".localhost") || METADATA_NAMES.has(host);
    return isLocal && !this.#mayBeAnywhere(url) ? LOCAL : undefined;
  }

  #problemOf(address: string, url: URL): string | undefined {
    if ([address, ...embeddedIPv4(address)].some((one) => isIn(this.#blocked, one))) return "in a blocked range";
    if (this.#mayBeAnywhere(url)) return undefined;
    const kind = addressClass(address);
    if (kind === "local") return LOCAL;
    const mayBePrivate = isIn(this.#allowed, address) || (this.#startsInCluster && this.#isService(url));
    return kind === "private" && !mayBePrivate ? PRIVATE : undefined;
  }

  #mayBeAnywhere(url: URL): boolean {
    return this.#options.allowLocal || this.#options.isTrusted?.(url) === true;
  }

  #isService(url: URL): boolean {
    const host = bareHost(url);
    return host.endsWith(".svc") || host.endsWith(`.svc.${this.#options.clusterDomain}`);
  }
}

function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [net = "", bits = ""] = range.split("/");
    list.addSubnet(net, Number(bits), familyOf(net));
  }
  return list;
}

/** IPv4-mapped addresses are in ranges of IPv4, too. */
function isIn(list: BlockList, address: string): boolean {
  return list.check(address, familyOf(address));
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIPv6(address) ? "ipv6" : "ipv4";
}
