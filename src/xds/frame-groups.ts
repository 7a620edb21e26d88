/**
 * Frames of resources in groups, each joined once however many responses have it. Lists are cut at the same resources, whatever
 * stands before these: lists that have most in common, as those of proxies that differ in what comes in alone, so have most of
 * their groups in common.
 */
import { hasSameItems } from "#lib/same-items.ts";
import type { BuiltResource } from "./built-resource.ts";

type Framed = Pick<BuiltResource, "id" | "frame">;

interface Group {
  readonly members: readonly Framed[];
  readonly bytes: Uint8Array;
}

/** One of so many resources begins a group. */
const CUT_EVERY = 256;

export class FrameGroups {
  readonly #maxBytes: number;
  /** By the id of their first member. */
  readonly #kept = new Map<number, Group>();
  #keptBytes = 0;

  /** How many bytes of groups may be kept for other responses. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The frames of these resources, one after the other. */
  of(resources: readonly Framed[]): readonly Uint8Array[] {
    if (resources.length < CUT_EVERY) return resources.map(({ frame }) => frame);
    const groups: Uint8Array[] = [];
    let members: Framed[] = [];
    for (const resource of resources) {
      if (resource.id % CUT_EVERY === 0 && members.length > 0) {
        groups.push(this.#joined(members));
        members = [];
      }
      members.push(resource);
    }
    groups.push(this.#joined(members));
    return groups;
  }

  /** Nobody is expected to want the same any more. */
  clear(): void {
    this.#kept.clear();
    this.#keptBytes = 0;
  }

  #joined(members: readonly Framed[]): Uint8Array {
    const [first] = members;
    if (first === undefined || members.length === 1) return first?.frame ?? new Uint8Array();
    const known = this.#kept.get(first.id);
    if (known !== undefined && hasSameItems(known.members, members)) return known.bytes;
    const bytes = Buffer.concat(members.map(({ frame }) => frame));
    this.#keptBytes += bytes.length - (known?.bytes.length ?? 0);
    this.#kept.set(first.id, { members, bytes });
    if (this.#keptBytes > this.#maxBytes) this.clear();
    return bytes;
  }
}
