/** Says hello and what it was told, on three ports; the last of them belongs to no service. */
import { createServer } from "node:net";

for (const port of [9000, 9001, 9002]) {
  createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (data) => socket.write(`hello ${data}`));
  }).listen(port);
}
