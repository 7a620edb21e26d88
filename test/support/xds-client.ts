/** An xDS client for tests, delta or state of the world: it sends what it is told and hands over what it gets. */
import assert from "node:assert/strict";
import { create, toBinary } from "@bufbuild/protobuf";
import { Client, type ClientDuplexStream, credentials, Metadata, type StatusObject } from "@grpc/grpc-js";
import { NodeSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import { type DeltaRequest, EMPTY_REQUEST, formatDeltaRequest } from "#protocol/messages/delta-request.ts";
import { type DeltaEnvelope, parseDeltaResponse } from "#protocol/messages/delta-response.ts";
import { parseStateResponse } from "#protocol/messages/state-response.ts";
import { formatStateRequest } from "#protocol/state-request.ts";
import { DIALECTS } from "#xds/stream/dialect.ts";

export interface XdsClientOptions {
  /** Encoded node, sent with the first request; see `nodeOf`. */
  readonly node?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of the stream; methods that begin with `Stream` are state of the world. */
  readonly method?: string;
  /** PEM of the root that the server's certificate is checked with; plain text when not given. */
  readonly root?: string;
  /** How long it waits for a response; a minute when not given. */
  readonly patienceMs?: number;
}

const PATIENCE_MS = 60_000;

export class XdsClient implements Disposable {
  readonly #client: Client;
  readonly #call: ClientDuplexStream<Buffer, Buffer>;
  readonly #responses: DeltaEnvelope[] = [];
  #notify: () => void = () => undefined;
  #node: Uint8Array | undefined;
  #status: StatusObject | undefined;
  readonly #isState: boolean;
  readonly #patienceMs: number;
  /** Over state of the world every request repeats the names. */
  readonly #names = new Map<string, readonly string[]>();
  /** Bytes of all responses. */
  receivedBytes = 0;

  constructor(address: string, options: XdsClientOptions = {}) {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(options.headers ?? {})) metadata.set(name, value);
    this.#node = options.node;
    this.#patienceMs = options.patienceMs ?? PATIENCE_MS;
    const { root } = options;
    const channel = root === undefined ? credentials.createInsecure() : credentials.createSsl(Buffer.from(root));
    this.#client = new Client(address, channel, {
      ...(root !== undefined && { "grpc.ssl_target_name_override": "istiod.istio-system.svc" }),
      "grpc.max_receive_message_length": -1,
      "grpc.use_local_subchannel_pool": 1,
    });
    const dialect = DIALECTS.find(({ method }) => method === (options.method ?? "DeltaAggregatedResources"));
    assert.ok(dialect);
    this.#isState = dialect.kind === "state";
    this.#call = this.#client.makeBidiStreamRequest(dialect.path, asIs, asIs, metadata);
    this.#call.on("data", (bytes: Buffer) => {
      this.receivedBytes += bytes.length;
      this.#responses.push(this.#isState ? stateEnvelope(bytes) : parseDeltaResponse(bytes));
      this.#notify();
    });
    this.#call.on("error", () => undefined); // the status tells
    this.#call.on("status", (status) => {
      this.#status = status;
      this.#notify();
    });
  }

  request(typeUrl: string, fields: Partial<DeltaRequest> = {}): void {
    const request = { ...EMPTY_REQUEST, node: this.#node, typeUrl, ...fields };
    if (fields.subscribe !== undefined) this.#names.set(typeUrl, fields.subscribe);
    const names = this.#names.get(typeUrl) ?? [];
    const state = { ...request, names, version: "" };
    this.#call.write(Buffer.from(this.#isState ? formatStateRequest(state) : formatDeltaRequest(request)));
    this.#node = undefined;
  }

  /** Bytes as they are, for requests that are none. */
  write(bytes: Uint8Array): void {
    this.#call.write(Buffer.from(bytes));
  }

  /** The next response; of that type, if given: those of other types stay. */
  async next(typeUrl?: string): Promise<DeltaEnvelope> {
    const isWanted = (response: DeltaEnvelope) => typeUrl === undefined || response.typeUrl === typeUrl;
    await this.#until(
      () => this.#responses.some(isWanted) || this.#status !== undefined,
      `a response ${typeUrl ?? ""}`,
    );
    const index = this.#responses.findIndex(isWanted);
    assert.ok(index >= 0, `the stream ended: ${this.#status?.details}`);
    const [response] = this.#responses.splice(index, 1);
    assert.ok(response);
    return response;
  }

  /** The next response of that type, acknowledged. */
  async take(typeUrl: string): Promise<DeltaEnvelope> {
    const response = await this.next(typeUrl);
    this.acknowledge(response);
    return response;
  }

  acknowledge({ typeUrl, nonce }: DeltaEnvelope): void {
    this.request(typeUrl, { nonce });
  }

  reject({ typeUrl, nonce }: DeltaEnvelope, message: string): void {
    this.request(typeUrl, { nonce, error: { code: 13, message } });
  }

  /** Responses that came and that nobody has taken. */
  get waiting(): readonly DeltaEnvelope[] {
    return this.#responses;
  }

  /** How the stream ended. */
  async ended(): Promise<StatusObject> {
    await this.#until(() => this.#status !== undefined, "the end of the stream");
    assert.ok(this.#status);
    return this.#status;
  }

  /** Stops reading, as a proxy that hangs does. */
  pause(): void {
    this.#call.pause();
  }
  resume(): void {
    this.#call.resume();
  }

  [Symbol.dispose](): void {
    this.#call.cancel();
    this.#client.close();
  }

  async #until(condition: () => boolean, what: string): Promise<void> {
    const end = performance.now() + this.#patienceMs;
    while (!condition()) {
      const left = end - performance.now();
      assert.ok(left > 0, `no sign of ${what} in ${this.#patienceMs} ms`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#notify = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }
}

/** Of the resources only the content is told. */
function stateEnvelope(bytes: Uint8Array): DeltaEnvelope {
  const { version, resources, ...rest } = parseStateResponse(bytes);
  return {
    ...rest,
    systemVersion: version,
    resources: resources.map((value) => ({ name: "", version: "", value })),
    removed: [],
  };
}

/** The node that such a proxy sends. */
export function nodeOf(proxy: MeshProxy): Uint8Array {
  const { nodeId: id, metadata, extensions } = proxy;
  return toBinary(
    NodeSchema,
    create(NodeSchema, {
      id,
      cluster: "test",
      metadata: JSON.parse(JSON.stringify(metadata)),
      extensions: [...extensions].map((name) => ({ name })),
      userAgentName: "envoy",
      userAgentVersionType: { case: "userAgentVersion", value: proxy.envoyVersion },
    }),
  );
}

const asIs = (bytes: Buffer) => bytes;
