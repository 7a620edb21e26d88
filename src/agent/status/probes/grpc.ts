/** gRPC probes. One call of one method: HTTP/2 alone does it, over a connection of our choice. */
import { type ClientHttp2Session, connect } from "node:http2";
import type { Socket } from "node:net";
import { MeshError } from "#lib/mesh-error.ts";
import { readMessage } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import type { GrpcProbe } from "./parse.ts";
import type { ProbeInput } from "./run.ts";

const CHECK = "/grpc.health.v1.Health/Check";
const SERVING = 1;
/** A compression flag and a length come before each message. */
const FRAME_HEAD_BYTES = 5;
const MAX_ANSWER_BYTES = 64 * 1024;
const OK = 0;
const DEADLINE_EXCEEDED = 4;
const UNIMPLEMENTED = 12;

/** Asks `grpc.health.v1.Health`; rejects when there is none. */
export async function checkGrpcHealth(
  { port, service }: GrpcProbe,
  { request, target, signal }: ProbeInput,
): Promise<boolean> {
  const socket = await target.connect({ host: target.host, port }, signal);
  const session = plainSession(socket, `${target.host.includes(":") ? `[${target.host}]` : target.host}:${port}`);
  try {
    const answer = await call(session, {
      message: Buffer.from(new MessageWriter().string(1, service).finish()),
      userAgent: request.headers["user-agent"]?.[0],
    });
    return healthOf(answer) === SERVING;
  } finally {
    session.destroy();
    socket.destroy();
  }
}

function plainSession(socket: Socket, authority: string): ClientHttp2Session {
  return connect(`http://${authority}`, { createConnection: () => socket });
}

interface Call {
  readonly message: Buffer;
  readonly userAgent: string | undefined;
}

function call(session: ClientHttp2Session, { message, userAgent }: Call): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    session.on("error", reject);
    const stream = session.request({
      ":method": "POST",
      ":path": CHECK,
      "content-type": "application/grpc",
      te: "trailers",
      ...(userAgent === undefined ? {} : { "user-agent": userAgent }),
    });
    const chunks: Buffer[] = [];
    let size = 0;
    let failure: MeshError | undefined = new MeshError("HTTP_FAILED", "grpc probe failed: the connection ended");
    const onStatus = (headers: Readonly<Record<string, unknown>>) => {
      if (headers["grpc-status"] !== undefined)
        failure = statusProblem(Number(headers["grpc-status"]), String(headers["grpc-message"] ?? ""));
    };
    stream.on("error", reject);
    stream.on("response", onStatus);
    stream.on("trailers", onStatus);
    stream.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_ANSWER_BYTES)
        stream.destroy(new MeshError("HTTP_FAILED", "grpc probe failed: the answer is too long"));
    });
    stream.on("close", () => (failure === undefined ? resolve(Buffer.concat(chunks)) : reject(failure)));
    const head = Buffer.alloc(FRAME_HEAD_BYTES);
    head.writeUInt32BE(message.length, 1);
    stream.end(Buffer.concat([head, message]));
  });
}

function statusProblem(status: number, message: string): MeshError | undefined {
  if (status === OK) return undefined;
  const words: Readonly<Record<number, string>> = {
    [UNIMPLEMENTED]: "server does not implement the grpc health protocol (grpc.health.v1.Health)",
    [DEADLINE_EXCEEDED]: "grpc request not finished within timeout",
  };
  return new MeshError("HTTP_FAILED", `${words[status] ?? "grpc probe failed"}: status ${status} ${message}`.trim());
}

function healthOf(answer: Buffer): number {
  let health = 0;
  readMessage(answer.subarray(FRAME_HEAD_BYTES), {
    varint: {
      1: (value) => {
        health = value;
      },
    },
  });
  return health;
}
