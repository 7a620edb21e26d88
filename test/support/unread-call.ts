/** A gRPC call that is read only when a test reads it. */
import http2, { type ClientHttp2Stream } from "node:http2";
import { connect } from "node:net";
import { FramedMessage, joined } from "#lib/grpc/messages.ts";

/**
 * Sends one message and then reads nothing, not even into its own buffers, until something listens to its stream. grpc-js
 * cannot do that: it takes whatever comes and keeps it. `target` is `host:port` or `unix:/path`.
 */
export class UnreadCall implements Disposable {
  readonly stream: ClientHttp2Stream;
  readonly #session: http2.ClientHttp2Session;

  constructor(target: string, path: string, message: Uint8Array) {
    const socket = target.startsWith("unix:") ? target.slice("unix:".length) : undefined;
    this.#session = http2.connect(
      `http://${socket === undefined ? target : "localhost"}`,
      socket === undefined ? {} : { createConnection: () => connect(socket) },
    );
    this.#session.on("error", () => undefined);
    this.stream = this.#session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
    });
    this.stream.on("error", () => undefined);
    this.stream.write(joined(new FramedMessage(message).framed));
  }

  [Symbol.dispose](): void {
    this.#session.destroy();
  }
}
