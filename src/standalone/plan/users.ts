/** Who the control plane and the workloads run as: user ids of a mesh's own, one for each address of the mesh. */
import { MeshError } from "#lib/mesh-error.ts";
import { type AddressRange, addressIndex } from "../mesh/address-range.ts";
import { type Account, NOBODY } from "./enter.ts";

/** Consecutive user ids, which are group ids too. */
export interface UserRange {
  readonly first: number;
  readonly count: number;
}

/** As that of `nobody` on most machines. */
export const NO_HOME = "/nonexistent";

/** The account of whoever has the address. Without a range there is only one account, which then goes by `nobody`'s number. */
export function ownAccount(users: UserRange | undefined, range: AddressRange, address: string): Account {
  if (users === undefined) return { ...NOBODY, home: NO_HOME };
  const index = addressIndex(range, address);
  if (index >= users.count) {
    throw new MeshError(
      "USERS_USED_UP",
      `Cannot add another member: all ${users.count} user ids of the mesh are in use (${users.first} and following)`,
    );
  }
  return { uid: users.first + index, gid: users.first + index, home: NO_HOME };
}
