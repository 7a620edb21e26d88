/** Which accounts there are for us: on a machine of our own all of them, in a user namespace those that it maps. */
import { readFileSync } from "node:fs";

/** `one`: whatever a process calls itself, to the kernel it is the account that made the namespace. */
export type AccountsHere = "all" | "many" | "one";

/** How the kernel shows owners that the namespace does not map. */
export const UNMAPPED_ID = 65_534;
const ALL_IDS = 0xff_ff_ff_ff;

/** Reads the text of /proc/self/uid_map: lines of first id inside, first id outside, count. */
export function accountsOfMap(uidMap: string): AccountsHere {
  const counts = uidMap
    .trim()
    .split("\n")
    .map((line) => Number(line.trim().split(/\s+/)[2]));
  const count = counts.reduce((sum, part) => sum + part, 0);
  return count >= ALL_IDS ? "all" : count === 1 ? "one" : "many";
}

/** For this process. It never changes while a process lives, and is as cheap to ask as its user id. */
export function accountsHere(): AccountsHere {
  return accountsOfMap(readFileSync("/proc/self/uid_map", "utf8"));
}
