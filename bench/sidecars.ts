/** Simulated sidecars over delta ADS. They acknowledge everything and decode only envelopes, so that they cost little. */
import { readFileSync } from "node:fs";
import { create, toBinary } from "@bufbuild/protobuf";
import { NodeSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import { connectGrpc, type GrpcConnection } from "#lib/grpc/client.ts";
import { joined } from "#lib/grpc/messages.ts";
import { readMessage, readString } from "#lib/wire/read.ts";
import { type DeltaRequest, EMPTY_REQUEST, formatDeltaRequest } from "#protocol/delta-request.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "#protocol/type-urls.ts";
import type { Access } from "./control-plane-process.ts";
import { GATEWAY_ROUTES, type MeshShape, proxyAddress, proxyNamespace, serviceHost } from "./mesh-folder.ts";

const METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
/** As Envoy has it. */
const WINDOW_BYTES = 16 * 1024 * 1024;
const KEEPALIVE = { intervalMs: 30_000, timeoutMs: 30_000 };

type Listener = (sidecar: number, typeUrl: string, response: Buffer) => void;

export class Sidecars implements Disposable {
  readonly #address: string;
  readonly #shape: MeshShape;
  readonly #access: Access | undefined;
  readonly #connections: GrpcConnection[] = [];
  readonly #end = new AbortController();
  readonly #listeners = new Set<Listener>();
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
      const listener: Listener = (sidecar, type, response) => {
        if (type !== typeUrl || latencies.has(sidecar) || !response.includes(needle)) return;
        latencies.set(sidecar, performance.now() - start);
        if (latencies.size === this.#shape.proxies) finish(() => resolve([...latencies.values()]));
      };
      this.#listeners.add(listener);
    });
  }

  [Symbol.dispose](): void {
    this.#end.abort();
    for (const connection of this.#connections) connection.close();
  }

  async #connect(index: number): Promise<void> {
    const access = this.#access;
    const tls = access && { serverName: "localhost", roots: readFileSync(access.rootFile) };
    const token = await access?.callers.token(proxyNamespace(this.#shape, index));
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const options = { address: this.#address, windowBytes: WINDOW_BYTES, keepalive: KEEPALIVE, tls };
    const connection = await connectGrpc(options, this.#end.signal);
    this.#connections.push(connection);
    const call = connection.call(METHOD, headers, {
      message: (pieces) => {
        const response = joined(pieces);
        this.receivedBytes += response.length;
        const { typeUrl, nonce } = envelope(response);
        send(typeUrl, { nonce });
        for (const listener of this.#listeners) listener(index, typeUrl, response);
      },
      end: ({ details }) => void (this.#end.signal.aborted || this.failures.push(details)),
    });
    const send = (typeUrl: string, fields: Partial<DeltaRequest>) =>
      call.send(formatDeltaRequest({ ...EMPTY_REQUEST, typeUrl, ...fields }));
    const endpoints = Array.from({ length: this.#shape.services }, (_, k) => `outbound|8000||${serviceHost(k)}`);
    send(CLUSTER_TYPE, { node: this.#node(index) });
    send(ENDPOINT_TYPE, { subscribe: endpoints });
    send(LISTENER_TYPE, {});
    send(ROUTE_TYPE, { subscribe: [this.#shape.routes === undefined ? "8000" : GATEWAY_ROUTES] });
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
