/**
 * A server that authorizes what carries `x-ext-authz: allow` or says "let me in", over HTTP (8000) and gRPC (9000). The
 * header it adds tells how it was asked.
 */
import { createServer, type IncomingMessage } from "node:http";
import { createServer as createHttp2Server } from "node:http2";

createServer(async (request, response) => {
  const { headers, url } = request;
  const isAllowed = headers["x-ext-authz"] === "allow" || (await textOf(request)).includes("let me in");
  response.writeHead(isAllowed ? 200 : 403, { "x-asked": `${url} ${headers["x-check"]}` }).end();
}).listen(8000);

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}

// A CheckResponse is empty when all is well; else its status (field 1) has a code (field 1).
const OK = Buffer.from([]);
const PERMISSION_DENIED = Buffer.from([0x0a, 0x02, 0x08, 0x07]);

createHttp2Server()
  .on("stream", (stream) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      // Headers and body are in the request as plain text.
      const isAllowed = /x-ext-authz.{0,4}allow|let me in/s.test(Buffer.concat(chunks).toString("latin1"));
      const message = isAllowed ? OK : PERMISSION_DENIED;
      const frame = Buffer.alloc(5);
      frame.writeUInt32BE(message.length, 1);
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end(Buffer.concat([frame, message]));
    });
  })
  .listen(9000);
