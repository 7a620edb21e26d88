/** What a network namespace holds, and which programs can change it. */

import {
  type BackendKind,
  backendsWithOurs,
  type FoundBackend,
  findBackends,
  missingBackend,
} from "./iptables/backend.ts";
import { readNft, tryNft } from "./nftables/plan.ts";
import type { Dialect } from "./rules/family.ts";
import type { Commands } from "./system/commands.ts";
import { Memory } from "./system/memory.ts";

export interface Machine {
  /** Who takes new rules; those of earlier runs are removed from the other. */
  readonly dialect: Dialect;
  /** iptables programs, with what they hold. IPv6 is left out where its programs are missing. */
  readonly backends: readonly FoundBackend[];
  /** What `nft` lists of family inet; undefined when it cannot be used. */
  readonly nftListing: string | undefined;
  /** What earlier runs have left to know; absent in a dry run. */
  readonly memory?: Memory;
  /** Interfaces of virtual machines that earlier runs knew. */
  readonly virtualInterfaces?: readonly string[];
}

export interface MachineWish {
  readonly dialect?: Dialect;
  /** The iptables programs to use instead of the detected ones. */
  readonly kind?: BackendKind | undefined;
  /** Rules are only to be removed: whatever holds some counts. */
  readonly cleanup?: boolean;
}

/** Throws when what takes the rules is missing or may not be used. Nothing is changed. */
export async function readMachine(commands: Commands, wish: MachineWish = {}): Promise<Machine> {
  const [machine, memory] = await Promise.all([readRules(commands, wish), Memory.open(commands)]);
  return { ...machine, memory, virtualInterfaces: await memory.recall() };
}

async function readRules(commands: Commands, wish: MachineWish): Promise<Machine> {
  const { dialect = "iptables", kind, cleanup = false } = wish;
  if (dialect === "nftables") {
    const [nftListing, backends] = await Promise.all([readNft(commands), allWithOurs(commands)]);
    return { dialect, backends, nftListing };
  }
  const [v4, v6, nftListing] = await Promise.all([
    findBackends(commands, "v4", kind),
    findBackends(commands, "v6", kind),
    tryNft(commands),
  ]);
  // Where rules are only removed, one of the two is enough.
  if (v4.length === 0 && !(cleanup && nftListing !== undefined)) throw await missingBackend(commands, kind);
  return { dialect, backends: [...v4, ...v6], nftListing };
}

async function allWithOurs(commands: Commands): Promise<readonly FoundBackend[]> {
  const [v4, v6] = await Promise.all([backendsWithOurs(commands, "v4"), backendsWithOurs(commands, "v6")]);
  return [...v4, ...v6];
}
