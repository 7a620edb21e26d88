/** Greets whoever the sidecar says it is. It never sees a token that is not good. */
import { createServer } from "node:http";

const server = createServer(({ headers }, response) =>
  response.end(`hello ${headers["x-user"] ?? "whoever you are"}\n`),
);
server.listen(8000);
process.once("SIGTERM", () => server.close(() => process.exit(0)).closeIdleConnections());
