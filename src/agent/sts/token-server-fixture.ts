/** A token server for tests: answers as it is told, and remembers what it was asked. */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface Told {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/** `undefined` leaves the caller without an answer. */
export type Tell = (asked: Asked) => Told | undefined;

export async function startTokenServer(
  t: { after(fn: () => void): void },
  tell: Tell,
): Promise<{ readonly host: string; readonly asked: Asked[] }> {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const one = { method: request.method ?? "", path: request.url ?? "", headers: request.headers, body };
    asked.push(one);
    const told = tell(one);
    if (told !== undefined) response.writeHead(told.status ?? 200, told.headers).end(told.body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** A token with these claims, which nobody has signed. */
export function unsignedJwt(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "none" })}.${part(claims)}.x`;
}
