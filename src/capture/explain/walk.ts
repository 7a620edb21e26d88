/**
 * The way of one packet through the rules, as the kernel would send it.
 *
 *   sent by the pod      raw OUTPUT, mangle OUTPUT, nat OUTPUT, and out; what goes to the pod itself comes back in:
 *                        raw PREROUTING, mangle PREROUTING (the nat table has decided once and is not asked again)
 *   sent to the pod      raw PREROUTING, mangle PREROUTING, nat PREROUTING, and to a socket
 */
import { isBuiltInChain, type Rule, type Table, type Target } from "../settings/rule.ts";
import { type Chains, chainsOf } from "./chains.ts";
import { matches, type PacketNow } from "./match.ts";
import type { Packet } from "./packet.ts";

export type End =
  /** To a port of this pod by a rule; `by` says what becomes of the addresses. */
  | { readonly kind: "captured"; readonly port: number; readonly by: "redirect" | "tproxy" }
  /** To whatever listens there in this pod, by no rule. */
  | { readonly kind: "local"; readonly port: number }
  /** Out of the pod by this interface, unchanged. */
  | { readonly kind: "out"; readonly interface: string }
  /** Not for this pod: on to where its routes lead. */
  | { readonly kind: "forwarded" }
  | { readonly kind: "dropped" };

export interface Walk<R extends Rule = Rule> {
  /** Rules that applied, in order. */
  readonly steps: readonly R[];
  readonly end: End;
}

/** Where the packet ends, and by which rules. `rules` are those of its address family. */
export function walk<R extends Rule>(rules: readonly R[], packet: Packet): Walk<R> {
  const way = new Way(chainsOf(rules), packet);
  const end = packet.direction === "outbound" ? way.out() : way.in(["raw", "mangle", "nat"]);
  return { steps: way.steps, end };
}

/** What a chain decides; undefined when it has no more rules. */
type Verdict = "pass" | "drop" | undefined;

/** One packet on its way: changes with every rule that applies. */
class Way<R extends Rule> {
  readonly steps: R[] = [];
  readonly #chains: Chains<R>;
  readonly #packet: Packet;
  #now: PacketNow;
  #captured: (End & { readonly kind: "captured" }) | undefined;

  constructor(chains: Chains<R>, packet: Packet) {
    this.#chains = chains;
    this.#packet = packet;
    const inbound = packet.direction === "inbound";
    this.#now = {
      ...packet,
      inInterface: inbound ? packet.interface : undefined,
      outInterface: inbound ? undefined : packet.interface,
      mark: 0,
      connectionMark: 0,
    };
  }

  out(): End {
    for (const table of this.#tables(["raw", "mangle", "nat"])) {
      if (this.#chain(table, "OUTPUT") === "drop") return { kind: "dropped" };
    }
    const { interface: name, family } = this.#packet;
    if (this.#captured !== undefined) this.#change({ destination: family === "v4" ? "127.0.0.1" : "::1" });
    else if (name !== "lo") return { kind: "out", interface: name };
    // Over loopback: the sender is forgotten, the mark is not.
    this.#change({ inInterface: "lo", outInterface: undefined, owner: undefined });
    return this.in(["raw", "mangle"]);
  }

  in(tables: readonly Table[]): End {
    for (const table of this.#tables(tables)) {
      if (this.#chain(table, "PREROUTING") === "drop") return { kind: "dropped" };
    }
    if (this.#captured !== undefined) return this.#captured;
    return this.#packet.toSelf ? { kind: "local", port: this.#now.port } : { kind: "forwarded" };
  }

  /** The nat table is asked about the first packet of a connection only; invalid packets belong to none. */
  #tables(tables: readonly Table[]): readonly Table[] {
    return tables.filter((table) => table !== "nat" || this.#packet.state === "NEW");
  }

  #chain(table: Table, chain: string): Verdict {
    for (const rule of this.#chains.get(table)?.get(chain) ?? []) {
      if (!rule.matches.every((match) => matches(match, this.#now))) continue;
      this.steps.push(rule);
      if (rule.target.kind === "return") return isBuiltInChain(chain) ? "pass" : undefined;
      const verdict = rule.target.kind === "jump" ? this.#chain(table, rule.target.chain) : this.#apply(rule.target);
      if (verdict !== undefined) return verdict;
    }
    return undefined;
  }

  #apply(target: Exclude<Target, { readonly kind: "return" | "jump" }>): Verdict {
    switch (target.kind) {
      case "accept":
        return "pass";
      case "drop":
        return "drop";
      case "redirect":
        // A socket that TPROXY chose is kept, whatever becomes of the addresses.
        this.#captured ??= { kind: "captured", port: target.port, by: "redirect" };
        this.#change({ port: target.port });
        return "pass";
      case "tproxy":
        this.#captured = { kind: "captured", port: target.port, by: "tproxy" };
        this.#change({ mark: target.mark });
        return "pass";
      case "set-mark":
        this.#change({ mark: target.mark });
        return undefined;
      case "save-mark":
        this.#change({ connectionMark: this.#now.mark });
        return undefined;
      case "restore-mark":
        this.#change({ mark: this.#now.connectionMark });
        return undefined;
      case "set-zone":
        return undefined;
    }
  }

  #change(part: Partial<PacketNow>): void {
    this.#now = { ...this.#now, ...part };
  }
}
