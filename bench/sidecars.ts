/**
 * Simulated sidecars over delta ADS. They cost as little as can be, since they share the machine with what is measured: they
 * acknowledge everything, decode only envelopes, and what many of them are told in the same bytes is decoded once.
 */
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { create, toBinary } from "@bufbuild/protobuf";
import { NodeSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import { FramedMessage, joined, type Pieces } from "#lib/grpc/messages.ts";
import { readMessage, readString } from "#lib/wire/read.ts";
import { type DeltaRequest, EMPTY_REQUEST, formatDeltaRequest } from "#protocol/messages/delta-request.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "#protocol/messages/type-urls.ts";
import type { Access } from "./control-plane-process.ts";
import { FramedCall } from "./framed-call.ts";
import { GATEWAY_ROUTES, type MeshShape, proxyAddress, proxyNamespace, serviceHost } from "./mesh-folder.ts";

const METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
/** As Envoy has it. */
const WINDOW_BYTES = 16 * 1024 * 1024;
const READ_BYTES = 64 * 1024;

/** A response, and the answer to it. */
interface Told {
  readonly response: Buffer;
  readonly typeUrl: string;
  readonly answer: FramedMessage;
}

type Listener = (sidecar: number, told: Told) => void;

export class Sidecars implements Disposable {
  readonly #address: string;
  readonly #shape: MeshShape;
  readonly #access: Access | undefined;
  readonly #sockets: Socket[] = [];
  #isOver = false;
  readonly #listeners = new Set<Listener>();
  #last: Told | undefined;
  readonly #buffer = Buffer.alloc(READ_BYTES);
  receivedBytes = 0;
  /** Streams that ended, which none should. */
  failures: string[] = [];

  constructor(address: string, shape: MeshShape, access?: Access) {
    this.#address = address;
    this.#shape = shape;
    this.#access = access;
  }

  /** Opens all streams, each with a connection of its own; see `everyone` for when they are served. */
  connect(): void {
    for (let index = 0; index < this.#shape.proxies; index++) {
      this.#connect(index).catch((error: Error) => this.failures.push(error.message));
    }
  }

  /** Milliseconds until each sidecar had a response of that type with those bytes in it. */
  everyone(typeUrl: string, needle: Buffer, patienceMs = 60_000): Promise<number[]> {
    const start = performance.now();
    const latencies = new Map<number, number>();
    let [last, isWanted]: [Told | undefined, boolean] = [undefined, false];
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void) => {
        clearTimeout(timer);
        this.#listeners.delete(listener);
        settle();
      };
      const timer = setTimeout(() => {
        const message = `${latencies.size} of ${this.#shape.proxies} sidecars got ${typeUrl} in ${patienceMs} ms`;
        finish(() => reject(new Error(`${message} ${this.failures.join()}`)));
      }, patienceMs);
      const listener: Listener = (sidecar, told) => {
        if (told !== last) [last, isWanted] = [told, told.typeUrl === typeUrl && told.response.includes(needle)];
        if (!isWanted || latencies.has(sidecar)) return;
        latencies.set(sidecar, performance.now() - start);
        if (latencies.size === this.#shape.proxies) finish(() => resolve([...latencies.values()]));
      };
      this.#listeners.add(listener);
    });
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  async #connect(index: number): Promise<void> {
    const token = await this.#access?.callers.token(proxyNamespace(this.#shape, index));
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    if (this.#isOver) return;
    const socket = this.#open((chunk) => call.read(chunk));
    this.#sockets.push(socket);
    const call = new FramedCall(socket, {
      path: METHOD,
      headers,
      windowBytes: WINDOW_BYTES,
      message: (pieces) => {
        const told = this.#told(pieces);
        this.receivedBytes += told.response.length;
        call.send(told.answer);
        for (const listener of this.#listeners) listener(index, told);
      },
      end: (reason) => void (this.#isOver || this.failures.push(reason)),
    });
    const send = (typeUrl: string, fields: Partial<DeltaRequest>) =>
      call.send(new FramedMessage(formatDeltaRequest({ ...EMPTY_REQUEST, typeUrl, ...fields })));
    const endpoints = Array.from({ length: this.#shape.services }, (_, k) => `outbound|8000||${serviceHost(k)}`);
    send(CLUSTER_TYPE, { node: this.#node(index) });
    send(ENDPOINT_TYPE, { subscribe: endpoints });
    send(LISTENER_TYPE, {});
    send(ROUTE_TYPE, { subscribe: [this.#shape.routes === undefined ? "8000" : GATEWAY_ROUTES] });
  }

  #told(pieces: Pieces): Told {
    if (this.#last !== undefined && isSame(this.#last.response, pieces)) return this.#last;
    const response = joined(pieces);
    const { typeUrl, nonce } = envelope(response);
    const answer = new FramedMessage(formatDeltaRequest({ ...EMPTY_REQUEST, typeUrl, nonce }));
    this.#last = { response, typeUrl, answer };
    return this.#last;
  }

  /** In plain text all read into one buffer: one for each of thousands of reads would make the collector busy meanwhile. */
  #open(read: (chunk: Buffer) => void): Socket {
    const [, host = "", port = ""] = /^(.*):(\d+)$/.exec(this.#address) ?? [];
    const where = { host, port: Number(port), noDelay: true };
    const callback = (length: number, buffer: Uint8Array) => {
      read(Buffer.from(buffer.subarray(0, length)));
      return true;
    };
    if (this.#access === undefined) return connect({ ...where, onread: { buffer: this.#buffer, callback } });
    const ca = readFileSync(this.#access.rootFile);
    return connectTls({ ...where, servername: "localhost", ALPNProtocols: ["h2"], ca });
  }

  #node(index: number): Uint8Array {
    const ip = proxyAddress(index);
    const { own, routes } = this.#shape;
    const role = routes === undefined ? "sidecar" : "router";
    const app = role === "router" ? "gateway" : own ? `svc-${index >> 1}` : "app";
    const namespace = proxyNamespace(this.#shape, index);
    const metadata = {
      NAMESPACE: namespace,
      CLUSTER_ID: "Kubernetes",
      ISTIO_VERSION: "1.29.6",
      LABELS: { app },
      INSTANCE_IPS: ip,
    };
    const id = `${role}~${ip}~app-${index}.${namespace}~${namespace}.svc.cluster.local`;
    return toBinary(NodeSchema, create(NodeSchema, { id, cluster: "app.default", metadata }));
  }
}

/** Compared piece by piece: a megabyte that is joined first takes longer to come than to be compared. */
function isSame(bytes: Buffer, pieces: Pieces): boolean {
  let at = 0;
  for (const piece of pieces) {
    if (!bytes.subarray(at, at + piece.length).equals(piece)) return false;
    at += piece.length;
  }
  return at === bytes.length;
}

function envelope(response: Buffer): { readonly typeUrl: string; readonly nonce: string } {
  let typeUrl = "";
  let nonce = "";
  readMessage(response, {
    bytes: {
      4: (value) => {
        typeUrl = readString(value);
      },
      5: (value) => {
        nonce = readString(value);
      },
    },
  });
  return { typeUrl, nonce };
}
