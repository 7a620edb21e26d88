/** Accounts that an administrator has given to an account: /etc/subuid and /etc/subgid. */

export interface IdRange {
  readonly first: number;
  readonly count: number;
}

/** Enough that nobody (65534), and the proxy's account below it, are among the mapped ones. */
const NEEDED = 65_534;

export interface Owner {
  readonly uid: number;
  /** Undefined for a number that has no name. */
  readonly name: string | undefined;
}

/** The range of an account that is large enough for a mesh, from lines of `name or uid:first:count`. */
export function subordinateIds(text: string, { uid, name }: Owner): IdRange | undefined {
  return text
    .split("\n")
    .map((line) => line.trim().split(":"))
    .filter(([who, , , more]) => more === undefined && (who === String(uid) || (name !== undefined && who === name)))
    .map(([, first, count]) => ({ first: Number(first), count: Number(count) }))
    .find(({ first, count }) => first > 0 && count >= NEEDED);
}

/** Arguments of newuidmap or newgidmap after the process: the account itself is root inside, the others follow. */
export function idMap(own: number, { first, count }: IdRange): readonly string[] {
  return ["0", String(own), "1", "1", String(first), String(count)];
}
