/** What a Service does: connections go to any of several addresses at which somebody is there. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export interface Front {
  readonly address: string;
  /** Where connections go from now on; those that are open stay. */
  lead(addresses: readonly string[]): void;
  /** Open connections stay, but nothing goes through them any more; new ones work. */
  stall(): void;
  close(): void;
}

/** Opens one on loopback. */
export async function openFront(first: readonly string[]): Promise<Front> {
  const open = new Set<Socket>();
  let addresses = first;
  let turn = 0;
  const lead = (client: Socket, left: number): void => {
    const upstream = connect(splitAddress(addresses[turn++ % addresses.length] ?? ""));
    upstream.once("connect", () => {
      open.add(upstream);
      upstream.removeAllListeners("error");
      for (const [from, to] of [[upstream, client] as const, [client, upstream] as const]) {
        from.on("error", () => to.destroy());
        from.on("close", () => to.destroy());
        from.pipe(to);
      }
    });
    upstream.once("error", () => {
      if (left > 0) lead(client, left - 1);
      else client.destroy();
    });
  };
  const front: Server = createServer((client) => {
    open.add(client);
    client.on("error", () => undefined);
    lead(client, addresses.length);
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  const { port } = front.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    lead: (next) => {
      addresses = next;
    },
    stall: () => {
      for (const socket of open) socket.unpipe().pause();
    },
    close: () => {
      for (const socket of open) socket.destroy();
      front.close();
    },
  };
}

function splitAddress(address: string): { readonly host: string; readonly port: number } {
  const [host = "", port = ""] = address.split(":");
  return { host, port: Number(port) };
}
