/** The packet that a person asks about, from flags. */
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import type { Parsed, Problem } from "#config/schema/problem.ts";
import type { Accounts } from "../settings/accounts.ts";
import { isLoopback } from "../settings/family.ts";
import type { Family } from "../settings/rule.ts";
import { isInterface } from "./match.ts";
import { type Owner, type Packet, sourceTowardsSelf } from "./packet.ts";

/** As given; what is missing is assumed. */
export interface PacketFlags {
  /** `10.0.0.5:443`, `[fd00::5]:443` */
  readonly destination: string;
  readonly uid?: string;
  readonly gid?: string;
  readonly inInterface?: string;
  readonly outInterface?: string;
  readonly proto?: string;
  /** An address, with or without a port. */
  readonly source?: string;
  readonly direction?: string;
  readonly ctstate?: string;
}

/** What the pod knows about itself. */
export interface PodFacts {
  readonly accounts: Accounts;
  readonly addresses: readonly string[];
  readonly virtualInterfaces: readonly string[];
}

export interface AskedPacket {
  readonly packet: Packet;
  /** What was not given, in words. */
  readonly assumed: readonly string[];
}

const PERSON = 1000;
const STATES = ["NEW", "ESTABLISHED", "RELATED", "INVALID"] as const;

/** Reports everything that is wrong, not the first. */
export function parsePacket(flags: PacketFlags, facts: PodFacts): Parsed<AskedPacket> {
  const reader = new FlagReader(flags, facts);
  const packet = reader.packet();
  const value = reader.problems.length === 0 && packet !== undefined ? { packet, assumed: reader.assumed } : undefined;
  return { value, problems: reader.problems };
}

interface Endpoint {
  readonly family: Family;
  readonly address: string;
  readonly port: number | undefined;
}

class FlagReader {
  readonly problems: Problem[] = [];
  readonly assumed: string[] = [];
  readonly #flags: PacketFlags;
  readonly #facts: PodFacts;

  constructor(flags: PacketFlags, facts: PodFacts) {
    this.#flags = flags;
    this.#facts = facts;
  }

  packet(): Packet | undefined {
    const direction = this.#direction();
    const destination = this.#destination(direction);
    const protocol = this.#oneOf("proto", ["tcp", "udp"] as const);
    const state = this.#oneOf("ctstate", STATES);
    const owner = this.#owner(direction);
    const source = this.#source(destination);
    if (destination?.port === undefined) return undefined;
    const place = this.#place(destination, direction);
    return {
      family: destination.family,
      direction,
      protocol,
      source:
        source?.address ??
        (place.toSelf && direction === "outbound" ? sourceTowardsSelf(destination.address) : undefined),
      sourcePort: source?.port,
      destination: destination.address,
      port: destination.port,
      ...place,
      owner,
      state,
    };
  }

  /** An interface by which it comes in says as much as the flag. */
  #direction(): Packet["direction"] {
    const { inInterface, outInterface, direction } = this.#flags;
    const implied = inInterface === undefined ? "outbound" : "inbound";
    const chosen = direction === undefined ? implied : this.#oneOf("direction", ["outbound", "inbound"] as const);
    if (chosen === "inbound" && outInterface !== undefined) {
      this.#problem("out-interface", "is about outbound packets, and this one is inbound");
    }
    if (chosen === "outbound" && inInterface !== undefined) {
      this.#problem("in-interface", "is about inbound packets, and this one is outbound");
    }
    return chosen;
  }

  #destination(direction: Packet["direction"]): Endpoint | undefined {
    const text = this.#flags.destination;
    const endpoint = parseEndpoint(text);
    if (endpoint?.port === undefined) {
      this.#problem(
        "explain",
        `must be an address with a port such as "10.0.0.5:443" or "[fd00::5]:443", not "${text}"`,
      );
    } else if (direction === "inbound" && isLoopback(endpoint.address)) {
      this.#problem("explain", `must not be a loopback address when the packet is inbound, and is "${text}"`);
    }
    return endpoint;
  }

  #source(destination: Endpoint | undefined): Endpoint | undefined {
    const text = this.#flags.source;
    if (text === undefined) return undefined;
    const source = parseEndpoint(text);
    if (source === undefined) this.#problem("source", `must be an address, with or without a port, not "${text}"`);
    else if (destination !== undefined && source.family !== destination.family) {
      this.#problem("source", `must be of the same family as "${this.#flags.destination}", and is "${text}"`);
    }
    return source;
  }

  #owner(direction: Packet["direction"]): Owner | undefined {
    const { users, groups } = this.#facts.accounts;
    const uid = this.#id("uid", users);
    const gid = this.#id("gid", groups);
    if (direction === "inbound") {
      for (const name of ["uid", "gid"] as const) {
        if (this.#flags[name] !== undefined)
          this.#problem(name, "is about outbound packets: the sender of others is unknown");
      }
      return undefined;
    }
    const user = uid ?? this.#assume(`user ${PERSON} (--uid)`, PERSON);
    return { uid: user, gid: gid ?? this.#assume(`group ${user} (--gid)`, user) };
  }

  #id(name: "uid" | "gid", known: ReadonlyMap<string, string>): number | undefined {
    const text = this.#flags[name];
    if (text === undefined) return undefined;
    const id = known.get(text) ?? text;
    const value = /^\d{1,10}$/.test(id) ? Number(id) : -1;
    if (value < 0 || value > 0xffffffff) {
      this.#problem(
        name,
        `must be a number or the name of a known ${name === "uid" ? "user" : "group"}, not "${text}"`,
      );
    }
    return value;
  }

  #place({ address }: Endpoint, direction: Packet["direction"]): Pick<Packet, "toSelf" | "interface"> {
    const { inInterface, outInterface } = this.#flags;
    const isOwn = isLoopback(address) || this.#facts.addresses.includes(address);
    if (direction === "inbound") {
      const name =
        this.#interface("in-interface", inInterface) ?? this.#assume("interface eth0 (--in-interface)", "eth0");
      // What a virtual machine sends is seldom meant for the pod; what others send always is.
      const virtual = this.#facts.virtualInterfaces.some((one) => isInterface(one, name));
      return { toSelf: isOwn || !virtual, interface: name };
    }
    const name = this.#interface("out-interface", outInterface);
    if (name !== undefined) return { toSelf: name === "lo", interface: name };
    return isOwn
      ? { toSelf: true, interface: "lo" }
      : { toSelf: false, interface: this.#assume("interface eth0 (--out-interface)", "eth0") };
  }

  #interface(flag: string, name: string | undefined): string | undefined {
    if (name !== undefined && !/^[\w.@:-]{1,15}$/.test(name)) {
      this.#problem(flag, `must be the name of an interface, not "${name}"`);
    }
    return name;
  }

  #oneOf<T extends string>(name: "proto" | "ctstate" | "direction", allowed: readonly [T, ...T[]]): T {
    const text = this.#flags[name];
    const found = allowed.find((one) => one.toLowerCase() === text?.toLowerCase());
    if (text !== undefined && found === undefined) {
      this.#problem(name, `must be ${allowed.join(" or ")}, not "${text}"`);
    }
    return found ?? allowed[0];
  }

  #assume<T>(text: string, value: T): T {
    this.assumed.push(text);
    return value;
  }

  #problem(flag: string, message: string): void {
    this.problems.push({ field: `--${flag}`, message, severity: "error" });
  }
}

/** An address with or without a port; IPv6 with a port needs brackets. An IPv4 address inside IPv6 is sent as IPv4. */
function parseEndpoint(text: string): Endpoint | undefined {
  const [, v4, v6InBrackets, port] = /^(?:([\d.]+)|\[([\da-f:.]+)\])(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const host = v4 ?? v6InBrackets ?? text;
  if (!isIP(host) || host.includes("%")) return undefined;
  const address = ipaddr.process(host);
  const number = port === undefined ? undefined : Number(port);
  if (address.range() === "unspecified" || number === 0 || (number ?? 1) > 65_535) return undefined;
  const spelled = address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString();
  return { family: address.kind() === "ipv4" ? "v4" : "v6", address: spelled, port: number };
}
