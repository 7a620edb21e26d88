/** Simulated sidecars over delta ADS. They acknowledge everything and decode only envelopes, so that they cost little. */
import { create, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { NodeSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import { readMessage, readString } from "#lib/wire/read.ts";
import { type DeltaRequest, EMPTY_REQUEST, formatDeltaRequest } from "#protocol/delta-request.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "#protocol/type-urls.ts";
import { GATEWAY_ROUTES, type MeshShape, proxyAddress, proxyNamespace, serviceHost } from "./mesh-folder.ts";

const METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
const asIs = (bytes: Buffer) => bytes;

type Listener = (sidecar: number, typeUrl: string, response: Buffer) => void;

export class Sidecars implements Disposable {
  readonly #address: string;
  readonly #shape: MeshShape;
  readonly #clients: Client[] = [];
  readonly #listeners = new Set<Listener>();
  receivedBytes = 0;
  /** Streams that ended, which none should. */
  failures: string[] = [];

  constructor(address: string, shape: MeshShape) {
    this.#address = address;
    this.#shape = shape;
  }

  /** Opens all streams, each with a connection of its own; see `everyone` for when they are served. */
  connect(): void {
    for (let index = 0; index < this.#shape.proxies; index++) this.#connect(index);
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
    for (const client of this.#clients) client.close();
  }

  #connect(index: number): void {
    const client = new Client(this.#address, credentials.createInsecure(), {
      "grpc.max_receive_message_length": -1,
      "grpc.use_local_subchannel_pool": 1,
    });
    this.#clients.push(client);
    const call = client.makeBidiStreamRequest(METHOD, asIs, asIs);
    const send = (typeUrl: string, fields: Partial<DeltaRequest>) =>
      call.write(Buffer.from(formatDeltaRequest({ ...EMPTY_REQUEST, typeUrl, ...fields })));
    call.on("error", (error: Error) => this.failures.push(error.message));
    call.on("data", (response: Buffer) => {
      this.receivedBytes += response.length;
      const { typeUrl, nonce } = envelope(response);
      send(typeUrl, { nonce });
      for (const listener of this.#listeners) listener(index, typeUrl, response);
    });
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
