/** The accounts that apps run as. */
import { MeshError } from "#lib/mesh-error.ts";
import { type Mesh, PROXY_ID, placeOf } from "../mesh/mesh.ts";
import type { Account } from "../plan/enter.ts";

/** Looks up every user that an app of the mesh names, in the text of /etc/passwd. */
export function accountsOf(
  mesh: Pick<Mesh, "members"> & Partial<Pick<Mesh, "file" | "lines">>,
  passwd: string,
): Record<string, Account> {
  const entries = passwd.split("\n").map((line) => line.split(":"));
  const accounts: Record<string, Account> = {};
  for (const member of mesh.members) {
    const { workload, app } = member;
    if (app?.user === undefined) continue;
    const account = findAccount(entries, app.user);
    if (account === undefined) {
      throw new MeshError(
        "USER_UNKNOWN",
        `${placeOf(mesh, member)}Cannot run workload "${workload}": this machine has no user "${app.user}"; make one, or correct user`,
      );
    }
    // The capture rules let both the user and the group of the proxy pass.
    if (account.uid === PROXY_ID || account.gid === PROXY_ID) {
      throw new MeshError(
        "USER_NOT_ALLOWED",
        `${placeOf(mesh, member)}Cannot run workload "${workload}" as user "${app.user}": ${PROXY_ID} is the proxy, whose traffic is not captured`,
      );
    }
    accounts[app.user] = account;
  }
  return accounts;
}

/** A number needs no entry; its group is then the same number. */
function findAccount(entries: readonly (readonly string[])[], user: string): Account | undefined {
  const [, , uid, gid, , home] = entries.find(([name, , id]) => name === user || id === user) ?? [];
  if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid), home: home || "/" };
  return /^\d{1,9}$/.test(user) ? { uid: Number(user), gid: Number(user), home: "/" } : undefined;
}
