/** JSON objects over a socket, one a line. */
import type { Socket } from "node:net";

/** Larger than any mesh, small enough to refuse what is none. */
const MAX_LINE_CHARS = 64 * 1024 * 1024;

/** Calls back for each line. What is no JSON, or endless, ends the connection. */
export function onJsonLines(socket: Socket, onValue: (value: unknown) => void): void {
  let rest = "";
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    try {
      for (const line of lines) onValue(JSON.parse(line));
    } catch (cause) {
      socket.destroy(new Error("a line that is no JSON", { cause }));
    }
    if (rest.length > MAX_LINE_CHARS) socket.destroy(new Error("a line without end"));
  });
}

/** Sends one line; nobody may be left to read it, which is no error. */
export function sendJsonLine(socket: Socket, value: object): void {
  if (socket.writable) socket.write(`${JSON.stringify(value)}\n`);
}
