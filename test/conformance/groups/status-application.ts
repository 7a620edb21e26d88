/** The application that the cases of the status port probe and scrape. */
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createSecureServer } from "node:http2";
import type { AddressInfo, Server as NetServer } from "node:net";
import {
  Server as GrpcServer,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { issueLeaf, issueRoot } from "#lib/pki/issue.ts";
import { readMessage, readString } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";

export interface Application {
  readonly port: number;
  /** Of the last request: headers as they came, and the version of HTTP. */
  readonly seen: { headers: Readonly<Record<string, string[]>>; version: string };
  close(): void;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export async function startApplication(handle: Handler = probed): Promise<Application> {
  const seen: Application["seen"] = { headers: {}, version: "" };
  const server = createServer((request, response) => {
    seen.headers = canonicalHeaders(request);
    seen.version = `HTTP/${request.httpVersion}`;
    handle(request, response);
  });
  return listening(server, seen);
}

/** The answers that the data describes under `appServer`. */
function probed({ url = "/", headers }: IncomingMessage, response: ServerResponse): void {
  const redirects: Readonly<Record<string, string>> = {
    "/redirect": "/",
    "/redirect-loop": "/redirect-loop",
    "/remote-redirect": "http://example.com/foo",
  };
  const code = /^\/status\/(\d+)$/.exec(url)?.[1];
  const location = redirects[url];
  if (location !== undefined) response.writeHead(301, { location });
  else if (code !== undefined) response.writeHead(Number(code), { location: "/" });
  else if (url === "/header") {
    const expected = headers.host === "test.com:9999" && headers["some-header"] === "some-value";
    response.writeHead(expected ? 200 : 400);
  }
  response.end();
}

/** HTTPS that offers what ALPN it is told to. */
export async function startSecureApplication(alpn: readonly string[] | undefined): Promise<Application> {
  const seen: Application["seen"] = { headers: {}, version: "" };
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
  const issuer = await issueRoot({ organization: "test", keyKind: "P-256", ...validity });
  const cert = await issueLeaf({ issuer, publicKey, subjectAltNames: ["app"], ...validity });
  const key = privateKey.export({ type: "pkcs8", format: "pem" });
  const options = { key, cert, allowHTTP1: true, ALPNProtocols: [...(alpn ?? ["http/1.1"])] };
  const server = createSecureServer(options, (request, response) => {
    seen.version = `HTTP/${request.httpVersion}`;
    response.end();
  });
  return listening(server, seen);
}

const HEALTH: Readonly<Record<string, number>> = { "": 1, "serving-svc": 1, "not-serving-svc": 2 };

/** `grpc.health.v1.Health` */
export async function startGrpcApplication(): Promise<Application> {
  const server = new GrpcServer();
  const raw = (bytes: Buffer) => bytes;
  const check = {
    path: "/grpc.health.v1.Health/Check",
    requestStream: false,
    responseStream: false,
    requestSerialize: raw,
    requestDeserialize: raw,
    responseSerialize: raw,
    responseDeserialize: raw,
  };
  server.addService(
    { Check: check },
    {
      Check: ({ request }: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => {
        let service = "";
        const onName = (name: Uint8Array) => {
          service = readString(name);
        };
        readMessage(request, { bytes: { 1: onName } });
        const health = HEALTH[service];
        if (health === undefined) answer({ code: status.NOT_FOUND, details: "unknown service" });
        else answer(null, Buffer.from(new MessageWriter().varint(1, health).finish()));
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  return { port, seen: { headers: {}, version: "" }, close: () => server.forceShutdown() };
}

async function listening(server: NetServer, seen: Application["seen"]): Promise<Application> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { port, seen, close: () => void server.close() };
}

/** Names as Go writes them; without those that every client adds by itself. */
function canonicalHeaders({ headersDistinct }: IncomingMessage): Record<string, string[]> {
  const entries = Object.entries(headersDistinct).flatMap(([name, values]) => {
    const canonical = name.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());
    return values === undefined || ["Host", "User-Agent", "Accept-Encoding"].includes(canonical)
      ? []
      : [[canonical, values] as const];
  });
  return Object.fromEntries(entries);
}
