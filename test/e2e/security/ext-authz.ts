/** A server that authorizes what carries `x-ext-authz: allow`, over HTTP (8000) and gRPC (9000), as in Istio's sample. */
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";

createServer(({ headers }, response) => {
  const isAllowed = headers["x-ext-authz"] === "allow";
  response.writeHead(isAllowed ? 200 : 403, { "x-asked": isAllowed ? "allowed" : "denied" }).end();
}).listen(8000);

// A CheckResponse is empty when all is well; else its status (field 1) has a code (field 1).
const OK = Buffer.from([]);
const PERMISSION_DENIED = Buffer.from([0x0a, 0x02, 0x08, 0x07]);

createHttp2Server()
  .on("stream", (stream) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      // Headers are in the request as plain text.
      const isAllowed = /x-ext-authz.{0,4}allow/s.test(Buffer.concat(chunks).toString("latin1"));
      const message = isAllowed ? OK : PERMISSION_DENIED;
      const frame = Buffer.alloc(5);
      frame.writeUInt32BE(message.length, 1);
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end(Buffer.concat([frame, message]));
    });
  })
  .listen(9000);
