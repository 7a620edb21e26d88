/** An external authorizer that allows everything, and leaves a header by which its verdict is known. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

const HOST = "authz.default.svc.cluster.local";
const PORT = 9000;

export const PROVIDER = {
  name: "authorizer",
  /** The cluster by which filters call it. */
  cluster: `outbound|${PORT}||${HOST}`,
  /** Set on responses to requests that it was asked about. */
  header: "x-asked",
  extension: {
    name: "authorizer",
    envoyExtAuthzHttp: { service: HOST, port: PORT, headersToDownstreamOnAllow: ["x-asked"] },
  },
  service: {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "authz", namespace: "default" },
    spec: { ports: [{ name: "http", port: PORT }] },
  },
} as const;

export class ProviderServer implements Disposable {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<ProviderServer> {
    const server = createServer((_, response) => response.setHeader(PROVIDER.header, "1").end());
    // A connection that is closed just when a request comes would be a denial.
    server.keepAliveTimeout = 0;
    server.requestTimeout = 0;
    server.headersTimeout = 0;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new ProviderServer(server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  [Symbol.dispose](): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
