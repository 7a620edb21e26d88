/**
 * Ports for programs that have to be told one. A port that is merely free now may be taken when the program binds it: by a
 * test of another process that found it free as well, or by any connection that the kernel gives it to. So these lie below
 * those that the kernel gives away, and each is held by a socket of its name until this process ends.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";

/** Below are ports with a meaning, of the mesh and of its samples. */
const LOWEST = 20_000;
const HIGHEST = 65_535;
/** Where fewer than these are left over, the kernel gives away nearly all. */
const ENOUGH = 1_000;

/** Ports at which nobody listens, all different, and not given again while this process runs. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort());
  return ports;
}

/** One of them. */
export async function freePort(): Promise<number> {
  const size = end() - LOWEST;
  let offset = Math.floor(Math.random() * size);
  for (let tries = 0; tries < size; tries++) {
    const port = LOWEST + offset;
    if ((await isHeld(port)) && (await isFree(port))) return port;
    offset = (offset + 1) % size;
  }
  throw new Error(`no port from ${LOWEST} to ${end()} is free`);
}

/** The first port that the kernel gives away by itself. */
function end(): number {
  const range = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8");
  const first = Number(range.trim().split(/\s+/)[0]);
  return first >= LOWEST + ENOUGH ? first : HIGHEST;
}

/** Whether it is ours from now on. The socket is abstract: it is no file and ends with the process. */
async function isHeld(port: number): Promise<boolean> {
  const holder = createServer().unref();
  return listens(holder.listen(`\0mizzen-test-port-${port}`));
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  if (!(await listens(server.listen(port, "0.0.0.0")))) return false;
  await new Promise((resolve) => server.close(resolve));
  return true;
}

async function listens(server: ReturnType<typeof createServer>): Promise<boolean> {
  return once(server, "listening").then(
    () => true,
    () => false,
  );
}
