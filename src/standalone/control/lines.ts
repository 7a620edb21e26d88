/** JSON objects over a socket, one a line. */
import type { Socket } from "node:net";

/** Larger than any mesh, small enough to refuse what is none. */
const MAX_LINE_CHARS = 64 * 1024 * 1024;
/** What waits for a reader that does not read. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** Calls back for each line. What is no JSON, or endless, ends the connection. */
export function onJsonLines(socket: Socket, onValue: (value: unknown) => void): void {
  // Pieces of a line that has not ended. They are joined once, so that a long line costs no more per character than a short one.
  let pieces: string[] = [];
  let length = 0;
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    const [first = "", ...others] = chunk.split("\n");
    pieces.push(first);
    length += first.length;
    const rest = others.pop();
    try {
      if (rest !== undefined) {
        for (const line of [pieces.join(""), ...others]) onValue(JSON.parse(line));
        pieces = [rest];
        length = rest.length;
      }
    } catch (cause) {
      socket.destroy(new Error("a line that is no JSON", { cause }));
    }
    if (length > MAX_LINE_CHARS) socket.destroy(new Error("a line without end"));
  });
}

/** Sends one line; nobody may be left to read it, which is no error. A reader that has stopped reading is cut off. */
export function sendJsonLine(socket: Socket, value: object): void {
  if (!socket.writable) return;
  if (socket.writableLength > MAX_WAITING_BYTES) socket.destroy();
  else socket.write(`${JSON.stringify(value)}\n`);
}
