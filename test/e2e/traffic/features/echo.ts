/**
 * Says who was asked for what: over HTTP on 8080 and TLS on 8443, as text on 9000 and, with SOCKET, on a unix socket.
 *
 *   /status/N      answers with that status           /delay/MS        answers later
 *   /fail/POD/N    the pod of that name fails so      /flaky/KEY/N     fails with 503 the first N times, by key
 *   /slow/KEY/MS   is late the first time, by key        /well            fails from /sick on until /heal
 */
import { readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer as createTcpServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { TLSSocket } from "node:tls";

const { POD_NAME = "echo", CERTIFICATES, SOCKET } = process.env;
const asked = new Map<string, number>();
let isSick = false;

/** How often this was asked before. */
function before(key: string): number {
  const count = asked.get(key) ?? 0;
  asked.set(key, count + 1);
  return count;
}

async function statusOf(path: string): Promise<number> {
  const [, what = "", first = "", second = ""] = path.split("/");
  if (what === "status") return Number(first);
  if (what === "sick" || what === "heal") isSick = what === "sick";
  if (what === "well" && isSick) return 500;
  if (what === "delay") await delay(Number(first));
  if (what === "fail" && first === POD_NAME) return Number(second);
  if (what === "flaky" && before(path) < Number(second)) return 503;
  if (what === "slow" && before(path) === 0) await delay(Number(second));
  return 200;
}

function tlsOf({ socket }: IncomingMessage): object | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const { subject } = socket.getPeerCertificate();
  // Node has it, its types do not.
  const { servername } = socket as TLSSocket & { readonly servername?: string | false };
  return { serverName: servername, client: subject?.CN, trusted: socket.authorized };
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url = "/", headers } = request;
  console.log(`${method} ${url} for ${headers.host}`);
  const status = await statusOf(url.split("?")[0] ?? "");
  response.writeHead(status, { "content-type": "application/json", "x-pod": POD_NAME, "x-secret": "of the app" });
  response.end(JSON.stringify({ pod: POD_NAME, method, url, headers, tls: tlsOf(request) }));
}

const listener: RequestListener = (request, response) => {
  answer(request, response).catch(() => response.destroy());
};

// Whoever ends a connection that a proxy keeps may do so at the moment at which the proxy uses it again.
createServer({ keepAliveTimeout: 0 }, listener).listen(8080);
createTcpServer((socket) => {
  socket.on("error", () => undefined);
  socket.on("data", (data) => socket.end(`${POD_NAME} got ${data}`));
}).listen(9000);
if (SOCKET !== undefined) {
  rmSync(SOCKET, { force: true });
  createServer({ keepAliveTimeout: 0 }, listener).listen({ path: SOCKET, writableAll: true });
}
if (CERTIFICATES !== undefined) {
  const [key, cert, ca] = ["outside.key", "outside.crt", "ca.crt"].map((file) =>
    readFileSync(`${CERTIFICATES}/${file}`),
  );
  const tls = { key, cert, ca, requestCert: true, rejectUnauthorized: false };
  createTlsServer({ ...tls, keepAliveTimeout: 0 }, listener).listen(8443);
}
process.once("SIGTERM", () => process.exit(0));
