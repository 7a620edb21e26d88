/**
 * Which account owns the other end of a TCP connection on loopback. The kernel lists both ends in /proc/net/tcp. Only an established
 * connection that a process still holds counts: the kernel lists those that were closed, and those that no process holds, as root's.
 */
import { readFile } from "node:fs/promises";
import { endianness } from "node:os";
import { isLoopback } from "./loopback.ts";

/** The ends of a connection, as its socket names them. */
export interface ConnectionEnds {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
}

/** Columns of the tables. */
const LOCAL = 1;
const REMOTE = 2;
const STATE = 3;
const UID = 7;
const INODE = 9;
const ESTABLISHED = "01";
/** Stands for all accounts that this user namespace does not know. */
const OVERFLOW_UID = 65_534;

/** The account of the caller; undefined when it is not certain. */
export async function callerAccount(ends: ConnectionEnds, read = readTables): Promise<number | undefined> {
  const { remoteAddress = "", remotePort = 0, localAddress = "", localPort = 0 } = ends;
  if (!isLoopback(remoteAddress) || !isLoopback(localAddress)) return undefined;
  const caller = formatEnd(remoteAddress, remotePort);
  const here = formatEnd(localAddress, localPort);
  for (const line of await read()) {
    const columns = line.trim().split(/ +/);
    if (shortened(columns[LOCAL]) !== caller || shortened(columns[REMOTE]) !== here) continue;
    const uid = Number(columns[UID]);
    const isHeld = columns[STATE] === ESTABLISHED && columns[INODE] !== "0";
    return isHeld && Number.isInteger(uid) && uid !== OVERFLOW_UID ? uid : undefined;
  }
  return undefined;
}

async function readTables(): Promise<readonly string[]> {
  const tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"].map((path) => readFile(path, "utf8").catch(() => ""));
  return (await Promise.all(tables)).flatMap((table) => table.split("\n").slice(1));
}

/** An address of loopback with its port, as the tables write it, IPv4 always in its short form. */
function formatEnd(address: string, port: number): string {
  const bytes =
    address === "::1"
      ? [...new Array<number>(15).fill(0), 1]
      : (/[\d.]+$/.exec(address)?.[0] ?? "").split(".").map(Number);
  return `${hexWords(bytes)}:${hex(port, 4)}`;
}

/** The tables write words of four bytes as the machine reads them. */
function hexWords(bytes: readonly number[]): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 4) {
    const word = bytes.slice(at, at + 4);
    text += (endianness() === "LE" ? word.reverse() : word).map((byte) => hex(byte, 2)).join("");
  }
  return text;
}

function hex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, "0");
}

const MAPPED_PREFIX = hexWords([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);

/** IPv4 in IPv6's form is IPv4. */
function shortened(end: string | undefined): string | undefined {
  return end?.startsWith(MAPPED_PREFIX) ? end.slice(MAPPED_PREFIX.length) : end;
}
