/**
 * What the control plane's debug pages show, from inside a pod: a server on loopback that passes questions on as xDS
 * requests of type `istio.io/debug`, with the workload's own identity. Over HTTP `/debug/syncz` answers with the page
 * itself; over gRPC, on the same port, `StreamAggregatedResources` answers a request of that type with the response.
 *
 * Each question has a stream of its own: one that the control plane refuses would end the stream that it came on, and
 * Envoy's must not end because somebody was curious.
 */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer, type Socket } from "node:net";
import { Admission, AGENT_LIMITS } from "#lib/admission/admission.ts";
import { joined, type Pieces } from "#lib/grpc/messages.ts";
import { grpcServer } from "#lib/grpc/server.ts";
import type { ServerCall } from "#lib/grpc/server-call.ts";
import { GrpcError, OK, STATUS, type Status } from "#lib/grpc/status.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { limitConnections } from "#lib/net/limit-connections.ts";
import { localRequestProblem } from "#lib/net/local-request.ts";
import { readField, readText } from "#lib/wire/read.ts";
import { rewriteMessage } from "#lib/wire/rewrite.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { DEBUG_TYPE } from "#protocol/messages/type-urls.ts";
import { type ControlPlaneOptions, callHeaders, connectControlPlane } from "../control-plane.ts";
import { ConnectionLimit } from "../limits/connection-limit.ts";
import { writeStruct } from "../wasm/struct.ts";
import { SOTW } from "./stream-kind.ts";

export interface DebugTapOptions {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  readonly upstream: ControlPlaneOptions;
  /** Of the workload: in the name of no other may it ask. */
  readonly namespace: string;
}

export interface DebugTap {
  readonly port: number;
  close(): void;
}

const PATH = `/envoy.service.discovery.v3.AggregatedDiscoveryService/${SOTW.method}`;
/** Of no workload: a control plane that is asked about the workload, which is on its list, must not take who asks for it. */
const NODE_ID = "sidecar~0.0.0.0~debug~";
const TIMEOUT_MS = 15_000;
const HTTP2_PREFACE = "PRI ";
const MAX_QUESTION_BYTES = 64 * 1024;
/** Of clients that have not sent anything, mostly: the admission limits the memory of the others. */
const MAX_CONNECTIONS = 1_024;
/** Each question has a connection to the control plane of its own, and a page may be large. */
const MAX_RUNNING = 4;

/** Rejects when the port cannot be had. */
export async function startDebugTap(options: DebugTapOptions): Promise<DebugTap> {
  const ask = limitedAsk(options);
  const admission = new Admission({ limits: AGENT_LIMITS });
  const http = createHttpServer((request, response) => void answerHttp(request, response, ask));
  const grpc = grpcServer(
    { [PATH]: (call) => answerGrpc(call, ask) },
    { maxMessageBytes: MAX_QUESTION_BYTES, maxStreams: MAX_RUNNING, admission },
  );
  limitConnections(http, { admission, maxBodyBytes: MAX_QUESTION_BYTES });
  const limit = new ConnectionLimit(MAX_CONNECTIONS);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    limit.add(socket);
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy());
    socket.once("data", (first) => {
      limit.begin(socket);
      socket.pause();
      socket.unshift(first);
      if (first.toString("latin1", 0, HTTP2_PREFACE.length) === HTTP2_PREFACE) {
        grpc.take(socket); // reads what is there by itself
        return;
      }
      http.emit("connection", socket);
      socket.resume();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) =>
      reject(new MeshError("DEBUG_NOT_LISTENING", `Cannot serve debug on ${options.host}:${options.port}`, { cause })),
    );
    server.listen(options.port, options.host, resolve);
  });
  const address = server.address();
  const close = () => {
    server.close();
    http.closeAllConnections();
    for (const socket of sockets) socket.destroy();
    grpc.close();
  };
  return { port: typeof address === "object" && address !== null ? address.port : 0, close };
}

type Ask = (message: Uint8Array) => Promise<Buffer>;

function limitedAsk(options: DebugTapOptions): Ask {
  let running = 0;
  return async (message) => {
    if (running >= MAX_RUNNING) throw new GrpcError(STATUS.RESOURCE_EXHAUSTED, "too many debug requests are running");
    running++;
    try {
      return await askControlPlane(message, options);
    } finally {
      running--;
    }
  };
}

async function answerHttp(request: IncomingMessage, response: ServerResponse, ask: Ask): Promise<void> {
  const problem = localRequestProblem(request.headersDistinct);
  if (problem !== undefined) {
    response.writeHead(403).end(`${problem}\n`);
    return;
  }
  const url = request.url ?? "";
  if (url !== "/debug" && !url.startsWith("/debug/") && !url.startsWith("/debug?")) {
    response.writeHead(404).end("Only /debug/... is served here\n");
    return;
  }
  const name = url.replace(/^\/debug\/?/, "");
  const message = new MessageWriter().string(3, name).string(4, DEBUG_TYPE).finish();
  try {
    const answer = await ask(message);
    const [resource] = SOTW.resources(answer);
    const page = resource === undefined ? undefined : readField(resource, 2);
    const type = looksLikeJson(page) ? "application/json" : "text/plain; charset=utf-8";
    response.writeHead(200, { "content-type": type }).end(page ?? "");
  } catch (thrown) {
    const late = thrown instanceof GrpcError && thrown.code === STATUS.DEADLINE_EXCEEDED;
    response.writeHead(late ? 504 : 503).end(`${errorText(thrown)}\n`);
  }
}

function answerGrpc(call: ServerCall, ask: Ask): void {
  const answer = async (message: Uint8Array): Promise<Status> => {
    let typeUrl: string;
    try {
      typeUrl = readText(message, 4);
    } catch (thrown) {
      return { code: STATUS.INVALID_ARGUMENT, details: errorText(thrown) };
    }
    if (!typeUrl.startsWith(DEBUG_TYPE))
      return { code: STATUS.INVALID_ARGUMENT, details: `only ${DEBUG_TYPE} is served here, not "${typeUrl}"` };
    try {
      call.send(await ask(message));
      return OK;
    } catch (thrown) {
      return thrown instanceof GrpcError ? thrown : { code: STATUS.UNAVAILABLE, details: errorText(thrown) };
    }
  };
  let asked = false;
  const onMessage = async (message: Pieces) => {
    if (asked) return;
    asked = true;
    call.end(await answer(joined(message)));
  };
  call.serve({ message: (message) => void onMessage(message) });
}

/** The response to one request, asked in the name of the workload. */
async function askControlPlane(message: Uint8Array, { upstream, namespace }: DebugTapOptions): Promise<Buffer> {
  const late = AbortSignal.timeout(TIMEOUT_MS);
  const connection = await connectControlPlane(upstream, late);
  try {
    const headers = await callHeaders(upstream);
    return await new Promise((resolve, reject) => {
      const call = connection.call(PATH, headers, {
        message: (response) => resolve(joined(response)),
        end: ({ code, details }) =>
          reject(
            code === STATUS.OK
              ? new MeshError("DEBUG_FAILED", "the control plane ended the stream")
              : new GrpcError(code, details),
          ),
      });
      call.send(withNode(message, namespace));
      late.addEventListener("abort", () =>
        reject(new GrpcError(STATUS.DEADLINE_EXCEEDED, `no answer in ${TIMEOUT_MS} ms`)),
      );
    });
  } finally {
    connection.close();
  }
}

/** Callers need not know who they are, and cannot pretend to be others: where callers are not authenticated, the node counts. */
function withNode(message: Uint8Array, namespace: string): Uint8Array {
  const metadata = writeStruct({ NAMESPACE: namespace });
  const node = new MessageWriter().string(1, NODE_ID).bytes(3, metadata).finish();
  const anonymous = rewriteMessage(message, { 2: () => undefined });
  return Buffer.concat([anonymous, new MessageWriter().bytes(2, node).finish()]);
}

function looksLikeJson(page: Uint8Array | undefined): boolean {
  return page !== undefined && /^\s*[[{"]/.test(Buffer.from(page.subarray(0, 32)).toString());
}
