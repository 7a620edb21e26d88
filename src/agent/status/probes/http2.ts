import { connect } from "node:http2";
import type { Socket } from "node:net";
import type { ProbeRequest, ProbeResponse } from "./http.ts";

/** A probe over an HTTP/2 connection that TLS has agreed on. */
export function overHttp2(
  { port, path, headers, target: { host } }: ProbeRequest,
  socket: Socket,
): Promise<ProbeResponse> {
  return new Promise((resolve, reject) => {
    const session = connect(`https://${host.includes(":") ? `[${host}]` : host}:${port}`, {
      createConnection: () => socket,
    });
    session.on("error", reject);
    const { host: authority, connection: _, ...rest } = headers;
    const stream = session.request({ ":path": path, ":authority": authority, ...rest });
    stream.on("error", reject);
    stream.on("response", ({ ":status": status = 0, location }) => {
      resolve({ status, location: location as string | undefined, body: stream, close: () => session.destroy() });
    });
    // A connection that ends before its answer came.
    stream.on("close", () => reject(new Error("the connection ended without an answer")));
    stream.end();
  });
}
