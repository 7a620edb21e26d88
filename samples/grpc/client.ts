/** Calls the Greeter over one connection: `node client.ts NAME [TIMES]`. */
import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { decodeText, encodeText, SAY_HELLO } from "./message.ts";

const [name = "World", times = "1"] = process.argv.slice(2);
const session = connect("http://greeter:50051");
for (let i = 0; i < Number(times); i++) console.log(await sayHello(session, name));
session.close();

async function sayHello(to: ClientHttp2Session, text: string): Promise<string> {
  const headers = { ":method": "POST", ":path": SAY_HELLO, "content-type": "application/grpc", te: "trailers" };
  const call = to.request(headers);
  const chunks: Buffer[] = [];
  let status: unknown;
  let message: unknown;
  const note = (got: Record<string, unknown>) => {
    status = got["grpc-status"] ?? status;
    message = got["grpc-message"] ?? message;
  };
  // A call that fails at once has only headers.
  call.on("response", note).on("trailers", note);
  call.on("data", (chunk: Buffer) => chunks.push(chunk));
  call.end(encodeText(text));
  await once(call, "close");
  return status === "0" ? decodeText(Buffer.concat(chunks)) : `failed with status ${status}: ${message}`;
}
