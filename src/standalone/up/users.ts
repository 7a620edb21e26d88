/** Finds user ids for a mesh that belong to no one else on this machine. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { MeshError } from "#lib/mesh-error.ts";
import { type AccountsHere, accountsHere } from "../host/user-namespace.ts";
import type { UserRange } from "../plan/users.ts";
import { registrations } from "./registration.ts";

/** Ranges of equal size. */
interface Pool {
  readonly first: number;
  readonly size: number;
  readonly ranges: number;
}

/**
 * Root takes ids above all that distributions and systemd give out, and below 2^31. An account that is not root has the
 * 65,536 that /etc/subuid gives it; those for system accounts, 1337 and 65534 are left out.
 */
const POOLS: Readonly<Record<AccountsHere, Pool | undefined>> = {
  all: { first: 2_000_000_000, size: 65_536, ranges: 2000 },
  many: { first: 30_000, size: 1000, ranges: 30 },
  one: undefined,
};

export interface RangeSearch {
  /** Of the mesh: it gets the same range each time, as long as that is free. */
  readonly id: string;
  readonly accounts: AccountsHere;
  /** Ids of the machine's own accounts, and ranges that it has given away. */
  readonly taken: readonly UserRange[];
}

/** Undefined where there is only one account. */
export function freeUsers({ id, accounts, taken }: RangeSearch): UserRange | undefined {
  const pool = POOLS[accounts];
  if (pool === undefined) return undefined;
  const { first, size, ranges } = pool;
  const start = createHash("sha256").update(id).digest().readUInt32BE() % ranges;
  for (let i = 0; i < ranges; i++) {
    const range = { first: first + ((start + i) % ranges) * size, count: size };
    if (!taken.some((other) => overlaps(range, other))) return range;
  }
  throw new MeshError(
    "USERS_USED_UP",
    `Cannot start a mesh: no ${size} consecutive user ids from ${first} to ${first + ranges * size - 1} are free; see /etc/passwd and /etc/subuid, or stop another mesh`,
  );
}

/** User ids for the mesh of this id. */
export async function usersFor(id: string): Promise<UserRange | undefined> {
  const files = await Promise.all(
    ["passwd", "group", "subuid", "subgid"].map((name) => readFile(`/etc/${name}`, "utf8").catch(() => "")),
  );
  const [passwd = "", group = "", ...subordinate] = files;
  const meshes = (await registrations()).flatMap((mesh) => (mesh.id === id ? [] : (mesh.users ?? [])));
  const accounts = accountsHere();
  // In a user namespace ids are counted anew: what the files give away there are other ids.
  const given = accounts === "all" ? subordinate.flatMap(rangesOf) : [];
  return freeUsers({ id, accounts, taken: [...idsOf(passwd), ...idsOf(group), ...given, ...meshes] });
}

/** Ids in the text of /etc/passwd or /etc/group. */
export function idsOf(text: string): readonly UserRange[] {
  return text.split("\n").flatMap((line) => {
    const first = Number(line.split(":")[2] ?? "x");
    return Number.isInteger(first) ? [{ first, count: 1 }] : [];
  });
}

/** Ranges in the text of /etc/subuid or /etc/subgid. */
export function rangesOf(text: string): readonly UserRange[] {
  return text.split("\n").flatMap((line) => {
    const [first = Number.NaN, count = Number.NaN] = line.split(":").slice(1).map(Number);
    return Number.isInteger(first) && Number.isInteger(count) ? [{ first, count }] : [];
  });
}

function overlaps(one: UserRange, other: UserRange): boolean {
  return one.first < other.first + other.count && other.first < one.first + one.count;
}
