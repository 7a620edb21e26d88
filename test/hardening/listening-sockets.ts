/** What a process listens on, from /proc. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface Listening {
  readonly kind: "tcp" | "udp" | "unix";
  /** Port, or path; an abstract name begins with `@`. */
  readonly at: string;
}

const LISTENS = { tcp: "0A", udp: "07" } as const;
/** Flag of a unix socket that accepts connections. */
const ACCEPTS = 0x10000;

export function listeningSockets(pid: number): readonly Listening[] {
  const inodes = socketInodes(pid);
  const found: Listening[] = [];
  for (const kind of ["tcp", "udp"] as const) {
    for (const file of [kind, `${kind}6`]) {
      for (const [, local = "", , state, , , , , , inode = ""] of rows(pid, file)) {
        if (state !== LISTENS[kind] || !inodes.has(inode)) continue;
        found.push({ kind, at: String(Number.parseInt(local.split(":")[1] ?? "", 16)) });
      }
    }
  }
  for (const [, , , flags = "", , , inode = "", path = ""] of rows(pid, "unix")) {
    if ((Number.parseInt(flags, 16) & ACCEPTS) !== 0 && inodes.has(inode)) found.push({ kind: "unix", at: path });
  }
  return found;
}

function rows(pid: number, file: string): string[][] {
  const [, ...lines] = readFileSync(`/proc/${pid}/net/${file}`, "utf8").trimEnd().split("\n");
  return lines.map((line) => line.trim().split(/\s+/));
}

function socketInodes(pid: number): ReadonlySet<string> {
  const links = readdirSync(`/proc/${pid}/fd`).map((descriptor) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${descriptor}`);
    } catch {
      return ""; // closed in the meantime
    }
  });
  return new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
}
