/** The published ports of a mesh, while it runs. */
import type { Server } from "node:net";
import { forward } from "../fabric/forward.ts";
import { type Member, memberKey, type PublishEntry } from "../mesh/mesh.ts";
import type { PublishedPort } from "../status/status.ts";

/** A port of this machine that is open, and what it is for. */
export interface OpenPublished {
  readonly port: PublishedPort;
  readonly server: Server;
}

/** What is to be published. */
export interface WantedPort {
  /** `name.namespace` */
  readonly member: string;
  readonly publish: PublishEntry;
}

type Publisher = Pick<Member, "name" | "namespace" | "publish">;

export class PublishedPorts {
  readonly #open = new Map<string, { readonly port: PublishedPort; readonly close: () => void }>();

  get ports(): readonly PublishedPort[] {
    return [...this.#open.values()].map(({ port }) => port);
  }

  /** Passes on what arrives at a port to the address of its member. */
  add({ port, server }: OpenPublished, address: string): void {
    this.#open.set(keyOf(port.member, port.entry), { port, close: forward(server, { address, port: port.port }) });
  }

  /** Those that are wanted and not open. */
  missing(members: readonly Publisher[]): readonly WantedPort[] {
    return wantedPorts(members).filter(({ member, publish }) => !this.#open.has(keyOf(member, publish.text)));
  }

  /** Closes those that are not wanted any more; answers with them. */
  closeOthers(members: readonly Publisher[]): readonly PublishedPort[] {
    const wanted = new Set(wantedPorts(members).map(({ member, publish }) => keyOf(member, publish.text)));
    const others = [...this.#open].filter(([key]) => !wanted.has(key));
    for (const [key, { close }] of others) {
      close();
      this.#open.delete(key);
    }
    return others.map(([, { port }]) => port);
  }
}

/** All ports that members publish. */
export function wantedPorts(members: readonly Publisher[]): readonly WantedPort[] {
  return members.flatMap((member) => member.publish.map((publish) => ({ member: memberKey(member), publish })));
}

function keyOf(member: string, entry: string): string {
  return `${member} ${entry}`;
}
