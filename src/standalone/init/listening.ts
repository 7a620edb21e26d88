/** Programs of a folder that are listening right now. */
import { readdir, readFile, readlink } from "node:fs/promises";
import { basename } from "node:path";
import { type FoundService, nameFrom } from "./found-service.ts";

const LISTENING = "0A";

/** Processes that work in the folder and listen; one for each port. */
export async function fromProcesses(folder: string, proc = "/proc"): Promise<readonly FoundService[]> {
  const pids = (await readdir(proc)).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(pids.map((pid) => serviceOf(folder, `${proc}/${pid}`)));
  return found.filter((service) => service !== undefined);
}

async function serviceOf(folder: string, process: string): Promise<FoundService | undefined> {
  try {
    if ((await readlink(`${process}/cwd`)) !== folder) return undefined;
    const command = (await readFile(`${process}/cmdline`, "utf8")).split("\0").slice(0, -1);
    const port = await listeningPort(process);
    if (port === undefined || command.length === 0) return undefined;
    const [program = "", ...rest] = command;
    const name = nameFrom(basename(rest.find((word) => /\.\w+$/.test(word)) ?? program).replace(/\.\w+$/, ""), "web");
    const words = [/^\/(usr\/)?(local\/)?s?bin\/|\/node$/.test(program) ? basename(program) : program, ...rest];
    return {
      name,
      command: words,
      port,
      env: {},
      after: [],
      source: `process ${basename(process)}, which listens on ${port}`,
    };
  } catch {
    // A process may end at any moment, and most are none of our business.
    return undefined;
  }
}

/** Undefined when it listens on none. */
async function listeningPort(process: string): Promise<number | undefined> {
  const descriptors = await readdir(`${process}/fd`);
  const links = await Promise.all(descriptors.map((name) => readlink(`${process}/fd/${name}`).catch(() => "")));
  const inodes = new Set(links.map((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1]));
  const tables = await Promise.all(
    ["tcp", "tcp6"].map((name) => readFile(`${process}/net/${name}`, "utf8").catch(() => "")),
  );
  return tables.map((table) => portOf(table, inodes)).find((port) => port !== undefined);
}

/** The lowest port of a table such as /proc/net/tcp that one of the sockets listens on. */
export function portOf(table: string, inodes: ReadonlySet<string | undefined>): number | undefined {
  const ports = table
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === LISTENING && inodes.has(inode))
    .map(([, local = ""]) => Number.parseInt(local.slice(local.lastIndexOf(":") + 1), 16));
  return ports.sort((a, b) => a - b)[0];
}
