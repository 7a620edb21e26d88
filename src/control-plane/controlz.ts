import type { Socket } from "node:net";
import fastify, { type FastifyInstance } from "fastify";
import { openPrivateSocket, type UnixSocket } from "#agent/unix-socket.ts";
import { addControlzRoutes, type ControlzOptions } from "#debug/controlz/controlz.ts";
import type { RootLogger } from "#lib/log/log.ts";
import { HttpListener } from "#lib/net/http-listener.ts";
import type { ControlzSettings } from "./settings/config.ts";
import { buildInfo } from "./settings/control-plane-name.ts";

export interface ControlzInput extends ControlzSettings, Pick<ControlzOptions, "scopes" | "authenticate" | "seesAll"> {
  readonly revision: string;
  readonly log: Pick<RootLogger, "info">;
}

/** ControlZ on its port, or with all topics on its private socket. */
export function controlzListener(input: ControlzInput): Pick<HttpListener, "start" | "stop"> {
  const { address, env, commandLine: args, scopes, authenticate, seesAll, revision, log } = input;
  const options: ControlzOptions = {
    isPrivate: "socket" in address,
    scopes,
    env,
    authenticate,
    seesAll,
    args,
    version: buildInfo(revision),
    exit: () => process.kill(process.pid, "SIGTERM"),
    // To Node itself this signal means to open a debugger.
    signal: (name) => log.info(`received ${name}: nothing to do`),
  };
  const routes = (app: FastifyInstance) => addControlzRoutes(app, options);
  return "socket" in address
    ? new ControlzSocket(address.socket, routes)
    : new HttpListener({ flag: "--ctrlz_port", address, routes });
}

class ControlzSocket {
  readonly #path: string;
  readonly #app = fastify();
  readonly #connections = new Set<Socket>();
  #socket: UnixSocket | undefined;

  constructor(path: string, routes: (app: FastifyInstance) => void) {
    this.#path = path;
    routes(this.#app);
  }

  async start(): Promise<string> {
    await this.#app.ready();
    this.#socket = await openPrivateSocket(this.#path);
    this.#socket.serve(
      (connection) => {
        this.#connections.add(connection);
        connection.once("close", () => this.#connections.delete(connection));
        this.#app.server.emit("connection", connection);
      },
      () => undefined, // A connection that cannot be accepted leaves its caller waiting; the next one may succeed.
    );
    return `unix:${this.#path}`;
  }

  async stop(): Promise<void> {
    this.#socket?.close();
    for (const connection of this.#connections) connection.destroy();
    await this.#app.close();
  }
}
