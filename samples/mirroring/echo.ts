/** Says who got which request, to the caller and into the log. */
import { createServer } from "node:http";

const { PORT = "8000", POD_NAME = "echo" } = process.env;
const server = createServer(({ method, url, headers }, response) => {
  console.log(`${method} ${url} for ${headers.host}`);
  response.end(`${POD_NAME} got ${method} ${url}\n`);
});
server.listen(Number(PORT));
process.once("SIGTERM", () => server.close(() => process.exit(0)).closeIdleConnections());
