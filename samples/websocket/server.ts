/** Says back what it hears, over WebSockets. */
import { createServer } from "node:http";
import { acceptKey, CLOSE_FRAME, readFrames, textFrame } from "./frame.ts";

const { PORT = "8000", POD_NAME = "chat" } = process.env;
const server = createServer((_, response) => response.end("speak WebSocket to me\n"));
server.on("upgrade", (request, socket) => {
  const accept = acceptKey(request.headers["sec-websocket-key"] ?? "");
  const head = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
  socket.write(`${[...head, `Sec-WebSocket-Accept: ${accept}`].join("\r\n")}\r\n\r\n`);
  let waiting = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    const { texts, rest } = readFrames(Buffer.concat([waiting, chunk]));
    waiting = Buffer.from(rest);
    for (const text of texts) {
      if (text === undefined) socket.end(CLOSE_FRAME);
      else socket.write(textFrame(`${POD_NAME} says: ${text}`));
    }
  });
  socket.on("error", () => socket.destroy());
});
server.listen(Number(PORT), () => console.log(`chat listens on ${PORT}`));
process.once("SIGTERM", () => process.exit(0));
