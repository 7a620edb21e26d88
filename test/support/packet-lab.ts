/**
 * Real packets for tests of traffic capture. Three network namespaces, in each of them listeners on the same ports:
 *
 *   peer ──eth0── pod ──eth1── side
 *
 * The pod has the rules; `peer` stands for the rest of the world, `side` for what is behind a second interface. Both accept
 * packets to any address that the pod has a route to, so every packet arrives somewhere and says where.
 */
import { type ChildProcessByStdio, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { promisify } from "node:util";

const exec = promisify(execFile);
const PROGRAM = join(import.meta.dirname, "packet-lab.py");

type Family = "v4" | "v6";
export type Place = "pod" | "peer" | "side";

export const POD: Readonly<Record<"eth0" | "eth1", Readonly<Record<Family, string>>>> = {
  eth0: { v4: "10.77.0.1", v6: "fd77::1" },
  eth1: { v4: "10.78.0.1", v6: "fd78::1" },
};
const NEIGHBOUR: Readonly<Record<"eth0" | "eth1", Readonly<Record<Family, string>>>> = {
  eth0: { v4: "10.77.0.2", v6: "fd77::2" },
  eth1: { v4: "10.78.0.2", v6: "fd78::2" },
};
/** Ranges whose every address answers, by the interface of the pod that leads to them. */
export const BEHIND: Readonly<Record<"eth0" | "eth1", Readonly<Record<Family, readonly string[]>>>> = {
  eth0: { v4: ["10.96.0.0/16", "172.20.0.0/16"], v6: ["fd96::/64", "fd98::/64"] },
  eth1: { v4: ["10.97.0.0/16"], v6: ["fd97::/64"] },
};

/** A packet to send, or the first one of a TCP connection. */
export interface Order {
  readonly from: Place;
  readonly family: Family;
  readonly protocol: "tcp" | "udp";
  readonly source?: string;
  readonly destination: string;
  readonly port: number;
  readonly uid: number;
  readonly gid: number;
}

/** Where a packet came out, or why it could not be sent; undefined when it was not seen again. */
export type Arrival =
  | { readonly place: Place; readonly port: number; readonly original?: readonly [string, number] }
  | { readonly error: string }
  | undefined;

export interface LabInput {
  /** Tells the namespaces of one lab from those of others. */
  readonly name: string;
  /** Ports of the proxy, which runs as 1337. */
  readonly proxyPorts: readonly number[];
  /** Ports of the application. Those outside the pod listen on all ports. */
  readonly ports: readonly number[];
}

type Party = ChildProcessByStdio<Writable, Readable, null>;

export class PacketLab implements AsyncDisposable {
  readonly #names: Readonly<Record<Place, string>>;
  readonly #parties = new Map<Place, Party>();
  readonly #waiting = new Map<string, (arrival: Arrival) => void>();
  readonly #children: Party[] = [];
  #sent = 0;

  private constructor(name: string) {
    this.#names = { pod: `${name}-pod`, peer: `${name}-peer`, side: `${name}-side` };
  }

  static async open(input: LabInput): Promise<PacketLab> {
    const lab = new PacketLab(input.name);
    try {
      await lab.#wire();
      const person = { uid: 1000, gid: 1000, transparent: [] };
      const everywhere = { ...person, ports: [...input.ports, ...input.proxyPorts] };
      // Envoy's inbound listener is transparent in TPROXY mode, which does no harm in the other.
      await lab.#start("pod", { uid: 1337, gid: 1337, ports: input.proxyPorts, transparent: input.proxyPorts });
      lab.#parties.set("pod", await lab.#start("pod", { ...person, ports: input.ports }));
      for (const place of ["peer", "side"] as const) lab.#parties.set(place, await lab.#start(place, everywhere));
      return lab;
    } catch (error) {
      await lab[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** File of the pod's network namespace. */
  get namespace(): string {
    return `/run/netns/${this.#names.pod}`;
  }

  /** Sends one packet and waits until somebody has it. */
  send(order: Order, patienceMs: number): Promise<Arrival> {
    const token = `packet-${this.#sent++}`;
    // The kernel must not take one packet for a further one of an earlier flow, so no source port comes twice soon.
    const sourcePort = 20_000 + (this.#sent % 40_000);
    return new Promise((resolve) => {
      const settle = (arrival: Arrival) => {
        clearTimeout(timer);
        this.#waiting.delete(token);
        resolve(arrival);
      };
      const timer = setTimeout(() => settle(undefined), patienceMs);
      this.#waiting.set(token, settle);
      this.#parties.get(order.from)?.stdin.write(`${JSON.stringify({ ...order, token, sourcePort })}\n`);
    });
  }

  async #start(place: Place, config: object): Promise<Party> {
    const child = spawn("ip", ["netns", "exec", this.#names[place], "python3", PROGRAM, JSON.stringify(config)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#children.push(child);
    const lines = createInterface(child.stdout);
    await once(lines, "line");
    lines.on("line", (line: string) => {
      const { token, ...arrival } = JSON.parse(line);
      this.#waiting.get(token)?.("error" in arrival ? arrival : { place, ...arrival });
    });
    return child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      const closed = child.exitCode === null ? once(child, "close") : undefined;
      child.kill("SIGKILL");
      await closed;
    }
    for (const name of Object.values(this.#names)) await exec("ip", ["netns", "del", name]).catch(() => undefined);
  }

  async #wire(): Promise<void> {
    const { pod, peer, side } = this.#names;
    const lines = [
      ...[pod, peer, side].map((name) => `netns add ${name}`),
      `link add eth0 netns ${pod} type veth peer name eth0 netns ${peer}`,
      `link add eth1 netns ${pod} type veth peer name eth0 netns ${side}`,
    ];
    for (const line of lines) await exec("ip", line.split(" "));
    for (const name of [pod, peer, side]) await this.#forward(name);
    await batch(pod, [
      "link set lo up",
      ...(["eth0", "eth1"] as const).flatMap((name) => [
        `address add ${POD[name].v4}/24 dev ${name}`,
        `address add ${POD[name].v6}/64 dev ${name} nodad`,
        `link set ${name} up`,
      ]),
      ...(["v4", "v6"] as const).flatMap((family) => [
        `route add default via ${NEIGHBOUR.eth0[family]}`,
        ...BEHIND.eth1[family].map((range) => `route add ${range} via ${NEIGHBOUR.eth1[family]}`),
      ]),
    ]);
    await batch(peer, neighbour("eth0"));
    await batch(side, neighbour("eth1"));
  }

  /** Packets of others are passed on, whatever way they came. */
  async #forward(name: string): Promise<void> {
    const values = { "ipv4/conf/all/rp_filter": 0, "ipv4/ip_forward": 1, "ipv6/conf/all/forwarding": 1 };
    const script = Object.entries(values).map(([key, value]) => `echo ${value} > /proc/sys/net/${key}`);
    await exec("ip", ["netns", "exec", name, "sh", "-c", script.join(" && ")]);
  }
}

/** Accepts packets to all addresses of its ranges as its own; everything else is behind the pod. */
function neighbour(link: "eth0" | "eth1"): readonly string[] {
  return [
    "link set lo up",
    `address add ${NEIGHBOUR[link].v4}/24 dev eth0`,
    `address add ${NEIGHBOUR[link].v6}/64 dev eth0 nodad`,
    "link set eth0 up",
    `route add default via ${POD[link].v4}`,
    `route add default via ${POD[link].v6}`,
    ...[...BEHIND[link].v4, ...BEHIND[link].v6].map((range) => `route add local ${range} dev lo`),
  ];
}

async function batch(namespace: string, lines: readonly string[]): Promise<void> {
  for (const line of lines) await exec("ip", ["-n", namespace, ...line.split(" ")]);
}
