/**
 * Frames of resources in groups, each joined once however many responses have it. Lists are cut at the same resources, whatever
 * stands before these: lists that have most in common, as those of proxies that differ in what comes in alone, so have most of
 * their groups in common.
 */
import { hasSameItems } from "#lib/collections/same-items.ts";
import type { BuiltResource } from "./built-resource.ts";

type Identified = Pick<BuiltResource, "id">;

interface Group {
  readonly members: readonly Identified[];
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

  /** The frames of these resources, one after the other. A resource has always the same. */
  of<R extends Identified>(resources: readonly R[], frameOf: (resource: R) => Uint8Array): readonly Uint8Array[] {
    if (resources.length < CUT_EVERY) return resources.map(frameOf);
    const groups: Uint8Array[] = [];
    let members: R[] = [];
    for (const resource of resources) {
      if (resource.id % CUT_EVERY === 0 && members.length > 0) {
        groups.push(this.#joined(members, frameOf));
        members = [];
      }
      members.push(resource);
    }
    groups.push(this.#joined(members, frameOf));
    return groups;
  }

  /** Nobody is expected to want the same any more. */
  clear(): void {
    this.#kept.clear();
    this.#keptBytes = 0;
  }

  /** None is empty. */
  #joined<R extends Identified>(members: readonly R[], frameOf: (resource: R) => Uint8Array): Uint8Array {
    const [first] = members as readonly [R];
    if (members.length === 1) return frameOf(first);
    const known = this.#kept.get(first.id);
    if (known !== undefined && hasSameItems(known.members, members)) return known.bytes;
    const bytes = Buffer.concat(members.map(frameOf));
    this.#keptBytes += bytes.length - (known?.bytes.length ?? 0);
    this.#kept.set(first.id, { members, bytes });
    if (this.#keptBytes > this.#maxBytes) this.clear();
    return bytes;
  }
}
