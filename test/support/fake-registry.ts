/** An image registry (OCI distribution API) and a plain file server for tests, on loopback. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";

/** The smallest module there is: magic number and version. */
export const EMPTY_MODULE = Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);

export interface FakeServer {
  /** `127.0.0.1:PORT` */
  readonly host: string;
  readonly requests: { readonly url: string; readonly authorization: string | undefined; readonly body: string }[];
  close(): void;
}

export type Handle = (request: IncomingMessage, response: ServerResponse, body: string) => void;

/** A server that answers as told and remembers what it was asked. */
export async function startServer(handle: Handle): Promise<FakeServer> {
  const requests: FakeServer["requests"] = [];
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      requests.push({ url: request.url ?? "", authorization: request.headers.authorization, body });
      handle(request, response, body);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { host: `127.0.0.1:${port}`, requests, close };
}

export interface Layer {
  readonly mediaType: string;
  readonly content: Buffer;
}

export interface Image {
  readonly manifest: Buffer;
  readonly contentType: string;
  /** In hex. */
  readonly digest: string;
  readonly blobs: ReadonlyMap<string, Buffer>;
}

const OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json";
export const DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json";

/** An image of these layers. */
export function image(layers: readonly Layer[], mediaType?: string): Image {
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      ...(mediaType === undefined ? {} : { mediaType }),
      config: { mediaType: "application/vnd.oci.image.config.v1+json", size: 2, digest: `sha256:${sha256("{}")}` },
      layers: layers.map((layer) => ({
        mediaType: layer.mediaType,
        size: layer.content.length,
        digest: `sha256:${sha256(layer.content)}`,
      })),
    }),
  );
  const blobs = new Map(layers.map(({ content }) => [`sha256:${sha256(content)}`, content]));
  return { manifest, contentType: mediaType ?? OCI_MANIFEST, digest: sha256(manifest), blobs };
}

/** A layer with files, as image builders make them. */
export function tarGzip(files: Readonly<Record<string, Buffer>>): Buffer {
  return gzipSync(tar(files));
}

export function tar(files: Readonly<Record<string, Buffer>>): Buffer {
  const parts = Object.entries(files).flatMap(([name, content]) => {
    const header = Buffer.alloc(512);
    header.write(name, 0);
    header.write("0000644\0", 100);
    header.write(`${content.length.toString(8).padStart(11, "0")}\0`, 124);
    header.write("0", 156);
    header.write("ustar\0", 257);
    return [header, content, Buffer.alloc((512 - (content.length % 512)) % 512)];
  });
  return Buffer.concat([...parts, Buffer.alloc(1024)]);
}

export interface RegistryOptions {
  /** Images by `repository:tag`; all are found by digest, too. */
  readonly images: Readonly<Record<string, Image>>;
  /** `basic` wants these credentials at each request, `basic for images` not at the first one, `bearer` a token that they buy. */
  readonly auth?: {
    readonly kind: "basic" | "basic for images" | "bearer";
    readonly user: string;
    readonly password: string;
  };
}

const TOKEN = "registry-token";

export async function startRegistry({ images, auth }: RegistryOptions): Promise<FakeServer> {
  const basic = `Basic ${Buffer.from(`${auth?.user}:${auth?.password}`).toString("base64")}`;
  const server: FakeServer = await startServer((request, response, body) => {
    const url = new URL(request.url ?? "", `http://${server.host}`);
    const { authorization } = request.headers;
    const answer = (status: number, content: Buffer | string, headers: Record<string, string> = {}) => {
      response.writeHead(status, headers);
      response.end(content);
    };
    if (url.pathname === "/token") {
      const exchanged = body.includes("grant_type=refresh_token") && body.includes("refresh_token=identity");
      const allowed = exchanged || authorization === basic;
      answer(allowed ? 200 : 401, JSON.stringify(allowed ? { token: TOKEN } : {}));
      return;
    }
    const isOpen = auth === undefined || (auth.kind === "basic for images" && url.pathname === "/v2/");
    const wanted = isOpen ? undefined : auth.kind === "bearer" ? `Bearer ${TOKEN}` : basic;
    if (wanted !== undefined && authorization !== wanted) {
      const bearer = `Bearer realm="http://${server.host}/token",service="fake"`;
      answer(401, "{}", { "www-authenticate": auth?.kind === "bearer" ? bearer : 'Basic realm="fake"' });
      return;
    }
    if (url.pathname === "/v2/") return answer(200, "{}");
    const [, repository, kind, name = ""] = /^\/v2\/(.+)\/(manifests|blobs)\/(.+)$/.exec(url.pathname) ?? [];
    const own = Object.entries(images).filter(([key]) => key.startsWith(`${repository}:`));
    if (kind === "blobs") {
      const blob = own.map(([, one]) => one.blobs.get(name)).find((found) => found !== undefined);
      return answer(blob === undefined ? 404 : 200, blob ?? "{}");
    }
    const found = own.find(([key, one]) => key === `${repository}:${name}` || `sha256:${one.digest}` === name)?.[1];
    if (found === undefined)
      return answer(404, '{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}');
    answer(200, found.manifest, { "content-type": found.contentType });
  });
  return server;
}

export function sha256(content: Buffer | string): string {
  return createHash("sha256").update(content).digest("hex");
}
