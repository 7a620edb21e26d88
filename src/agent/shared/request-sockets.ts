import { spawn } from "node:child_process";
import { Socket as UdpSocket } from "node:dgram";
import { Server } from "node:net";
import { MeshError } from "#lib/mesh-error.ts";
import type { Interfaces } from "../instance-addresses.ts";
import type { PlaceSockets } from "../place.ts";
import type { SocketsMessage, SocketsWanted } from "./open-sockets.ts";

export interface OpenedSockets {
  readonly sockets: PlaceSockets;
  readonly interfaces: Interfaces;
  readonly resolvConf: string;
}

export interface RequestSocketsInput {
  readonly wanted: SocketsWanted;
  /** Begins a command line that runs inside the namespace. */
  readonly enter: readonly string[];
  /** The agent's own program, which has the command `open-sockets`. */
  readonly program: readonly string[];
}

const TIMEOUT_MS = 20_000;

/** Runs `openSockets()` in another network namespace and takes what it opens. */
export async function requestSockets({ wanted, enter, program }: RequestSocketsInput): Promise<OpenedSockets> {
  const [command = "", ...args] = [...enter, ...program, "open-sockets", JSON.stringify(wanted)];
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "pipe", "ipc"], timeout: TIMEOUT_MS });
  let words = "";
  child.stderr?.on("data", (chunk) => {
    words += String(chunk);
  });
  const received = new Received();
  try {
    await new Promise<void>((resolve, reject) => {
      child.on("error", reject);
      child.on("exit", (code, signal) => {
        if (!received.done) reject(new Error(`it ended with ${signal ?? `status ${code}`}: ${words.trim()}`));
      });
      child.on("message", (message, handle) => {
        try {
          if (received.take(message as SocketsMessage, handle)) resolve();
        } catch (thrown) {
          reject(thrown);
        }
      });
    });
    return received.result();
  } catch (cause) {
    received.close();
    throw new MeshError("PLACE_NOT_ENTERED", `Cannot open sockets inside (${enter.slice(0, 3).join(" ")} ...)`, {
      cause,
    });
  } finally {
    child.kill();
  }
}

class Received {
  readonly #udp = new Map<string, UdpSocket>();
  readonly #tcp = new Map<string, Server>();
  #status: Server | undefined;
  #interfaces: Interfaces = {};
  #resolvConf = "";
  done = false;

  /** True when that was all. */
  take(message: SocketsMessage, handle: unknown): boolean {
    switch (message.kind) {
      case "facts":
        this.#interfaces = message.interfaces;
        this.#resolvConf = message.resolvConf;
        break;
      case "status":
        if (handle instanceof Server) this.#status = handle;
        break;
      case "dns-udp":
        if (handle instanceof UdpSocket) this.#udp.set(message.host, handle);
        break;
      case "dns-tcp":
        if (handle instanceof Server) this.#tcp.set(message.host, handle);
        break;
      case "error":
        throw new Error(message.message);
      case "done":
        this.done = true;
    }
    return this.done;
  }

  result(): OpenedSockets {
    const dns = new Map(
      [...this.#udp].flatMap(([host, udp]) => {
        const tcp = this.#tcp.get(host);
        return tcp === undefined ? [] : [[host, { udp, tcp }] as const];
      }),
    );
    return { sockets: { status: this.#status, dns }, interfaces: this.#interfaces, resolvConf: this.#resolvConf };
  }

  close(): void {
    this.#status?.close();
    for (const socket of [...this.#udp.values(), ...this.#tcp.values()]) socket.close();
  }
}
