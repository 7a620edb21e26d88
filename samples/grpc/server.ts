/** The Greeter of greeter.proto. */
import { createServer } from "node:http2";
import { decodeText, encodeText, SAY_HELLO } from "./message.ts";

const { PORT = "50051", POD_NAME = "greeter" } = process.env;
const OK = "0";
const UNIMPLEMENTED = "12";

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    response.setHeader("content-type", "application/grpc");
    const known = request.url === SAY_HELLO;
    if (known) response.write(encodeText(`Hello ${decodeText(Buffer.concat(chunks))}, from ${POD_NAME}`));
    // Whether the call succeeded is said after the message.
    response.addTrailers({ "grpc-status": known ? OK : UNIMPLEMENTED });
    response.end();
  });
});
server.listen(Number(PORT), () => console.log(`greeter listens on ${PORT}`));
process.once("SIGTERM", () => process.exit(0));
