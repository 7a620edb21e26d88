/** One stream of Envoy and its counterpart to the control plane. */
import {
  type Client,
  type ClientDuplexStream,
  connectivityState,
  type ServerDuplexStream,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { errorText } from "#lib/mesh-error.ts";
import { readField, readText } from "#lib/wire/read.ts";
import { EXTENSION_TYPE, LISTENER_TYPE, shortTypeName } from "#protocol/type-urls.ts";
import { callMetadata } from "../control-plane.ts";
import { RAW } from "../unix-server.ts";
import { type Connections, isReady } from "./connections.ts";
import type { XdsProxyOptions } from "./service.ts";
import type { StreamKind } from "./stream-kind.ts";

export interface ProxyStreamInput extends XdsProxyOptions {
  readonly connections: Connections;
  readonly kind: StreamKind;
  readonly downstream: ServerDuplexStream<Buffer, Buffer>;
  /** Counted per agent, for logs. */
  readonly id: number;
  readonly path: string;
}

type Upstream = ClientDuplexStream<Buffer, Buffer>;
type Failure = Pick<ServiceError, "code" | "details">;

/** `istio.v1.HealthInformation`: a request of this type tells how the workload is. */
const HEALTH_TYPE = "type.googleapis.com/istio.v1.HealthInformation";
/** Responses with Wasm modules that wait for them; the control plane has one on its way at a time. */
const MAX_WAITING_EXTENSIONS = 4;

/**
 * States: connecting, then passing messages in both directions until one side ends, which ends the other. Before the
 * control plane closes the connection for good (it announces that), or when its root certificate changed, a connection
 * to take its place is opened first, and Envoy is sent there by ending its stream without an error.
 */
export class ProxyStream {
  readonly #input: ProxyStreamInput;
  /** What Envoy asked for on this stream. */
  readonly #envoyTypes = new Set<string>();
  #upstream: Upstream | undefined;
  #ended = false;
  /** Reading upstream waits while this is above 0. */
  #holds = 0;
  #envoyIsFull = false;
  #waitingExtensions = 0;
  /** Envoy must get the responses of a type in order, however long their modules take. */
  #extensions: Promise<void> = Promise.resolve();
  /** The last version of extensions that Envoy accepted. */
  #extensionVersion = "";

  constructor(input: ProxyStreamInput) {
    this.#input = input;
  }

  /** Ends, without an error, when both streams have ended. */
  async run(): Promise<void> {
    const { connections, upstream: options, downstream, log, metrics, id, path } = this.#input;
    let client: Client | undefined;
    try {
      client = await connections.take();
      const connected = await isConnected(client, downstream);
      if (downstream.cancelled) return;
      const metadata = await callMetadata(options, log);
      if (connected) log.info(`connected to upstream XDS server: ${options.address}`, { id });
      else {
        log.error(`failed to connect to upstream ${options.address}`, { id });
        metrics.istiodConnectionFailures.add();
      }
      const { requestSerialize, responseDeserialize } = RAW;
      // Without a connection this fails at once, and says why there is none.
      const upstream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
      if (connected) this.#watchConnection(client);
      await this.#pump(upstream);
    } catch (thrown) {
      this.#endDownstream({ code: status.UNAVAILABLE, details: errorText(thrown) });
    } finally {
      client?.close();
    }
  }

  /** Moves Envoy to a new connection, if there can be one; else it stays where it is. */
  async move(reason: string): Promise<void> {
    const { connections, upstream: options, downstream, log, id } = this.#input;
    const ready = await connections.prepare().catch((thrown: unknown) => {
      log.warn(`Cannot prepare another connection to ${options.address}: ${errorText(thrown)}`, { id });
      return false;
    });
    if (!ready || this.#ended || this.#upstream === undefined) return;
    log.info(`moving to another connection to ${options.address}: ${reason}`, { id });
    this.#end(() => {
      this.#upstream?.cancel();
      downstream.end();
    });
  }

  /** Tells how the workload is; before Envoy asked for listeners nobody would know whose health it is. */
  sendHealth(): void {
    const state = this.#input.health?.current;
    if (state !== undefined && this.#envoyTypes.has(LISTENER_TYPE))
      this.#send(this.#input.kind.request(HEALTH_TYPE, state.healthy ? undefined : state.message));
  }

  /** A connection that takes no new streams has been told to end. */
  #watchConnection(client: Client): void {
    client.getChannel().watchConnectivityState(connectivityState.READY, Number.POSITIVE_INFINITY, () => {
      // A connection that broke ends its stream as well, in a moment.
      setImmediate(() => {
        if (!this.#ended) void this.move("the control plane is closing this one");
      });
    });
  }

  /** Passes messages on in both directions until one side ends. */
  #pump(upstream: Upstream): Promise<void> {
    const { downstream, metrics } = this.#input;
    this.#upstream = upstream;
    return new Promise((resolve) => {
      this.#onEnd = resolve;
      const upstreamGone = (failure: Failure | undefined) => this.#end(() => this.#endDownstream(failure));
      const envoyGone = (reason: "cancelled" | "error") => {
        this.#end(() => {
          metrics.envoyTerminations[reason].add();
          upstream.cancel();
        });
      };
      upstream.on("error", upstreamGone);
      upstream.on("end", () => upstreamGone(undefined));
      downstream.on("cancelled", () => envoyGone("cancelled"));
      downstream.on("error", () => envoyGone("error"));
      downstream.on("end", () => {
        envoyGone("cancelled");
        downstream.end();
      });
      downstream.on(
        "data",
        this.#guarded((request) => this.#onRequest(request)),
      );
      upstream.on(
        "data",
        this.#guarded((response) => this.#onResponse(response)),
      );
      downstream.on("drain", () => this.#release("envoy"));
    });
  }

  #onEnd: () => void = () => undefined;

  #end(finish: () => void): void {
    if (this.#ended) return;
    this.#ended = true;
    finish();
    this.#onEnd();
  }

  /** A message that cannot be read is the end of a stream, not of the agent. */
  #guarded(pass: (message: Buffer) => void): (message: Buffer) => void {
    return (message) => {
      try {
        if (!this.#ended) pass(message);
      } catch (thrown) {
        this.#fail(`unreadable xDS message: ${errorText(thrown)}`);
      }
    };
  }

  #fail(details: string): void {
    this.#end(() => {
      this.#endDownstream({ code: status.INTERNAL, details });
      this.#upstream?.cancel();
    });
  }

  /** Requests are small: they are queued rather than held back, since both sides waiting for each other would be a deadlock. */
  #send(request: Buffer): void {
    if (this.#ended) return;
    this.#input.metrics.xdsRequests.add();
    this.#upstream?.write(request);
  }

  #onRequest(request: Buffer): void {
    const { kind, ownTypes } = this.#input;
    const typeUrl = kind.requestType(request);
    const isFirst = !this.#envoyTypes.has(typeUrl);
    this.#envoyTypes.add(typeUrl);
    if (typeUrl === EXTENSION_TYPE) this.#extensionVersion = kind.requestVersion(request) || this.#extensionVersion;
    this.#send(request);
    if (!isFirst || typeUrl !== LISTENER_TYPE) return;
    for (const own of ownTypes.keys()) this.#send(kind.request(own));
    this.sendHealth();
  }

  #onResponse(response: Buffer): void {
    const { kind, ownTypes, convertExtensions, metrics, log, id } = this.#input;
    metrics.xdsResponses.add();
    const typeUrl = kind.responseType(response);
    log.debug("upstream response", { id, type: shortTypeName(typeUrl), bytes: response.length });
    if (ownTypes.has(typeUrl)) this.#handleOwn(response);
    else if (!this.#envoyTypes.has(typeUrl))
      log.error(`Skipping a response of type ${typeUrl}, which Envoy did not ask for`, { id });
    else if (typeUrl === EXTENSION_TYPE && convertExtensions !== undefined) this.#queueExtensions(response);
    else this.#forward(response);
  }

  /** Reading pauses while Envoy's side is full, and with it, by flow control, the control plane. */
  #forward(response: Buffer): void {
    if (this.#ended || this.#input.downstream.write(response) || this.#envoyIsFull) return;
    this.#envoyIsFull = true;
    this.#hold();
  }

  #handleOwn(bytes: Buffer): void {
    const { kind, ownTypes, log, id } = this.#input;
    const envelope = kind.envelope(bytes);
    // Types of our own have one resource.
    const [resource] = kind.resources(bytes);
    if (resource === undefined) return;
    let refused: string | undefined;
    try {
      const resourceType = readText(resource, 1);
      if (resourceType !== envelope.typeUrl) throw new Error(`the resource is of type "${resourceType}"`);
      ownTypes.get(envelope.typeUrl)?.(readField(resource, 2) ?? new Uint8Array());
    } catch (thrown) {
      refused = errorText(thrown);
      log.error(`Refused a response of type ${shortTypeName(envelope.typeUrl)}: ${refused}`, { id });
    }
    this.#send(kind.acknowledgement(envelope, refused));
  }

  #queueExtensions(response: Buffer): void {
    if (++this.#waitingExtensions === MAX_WAITING_EXTENSIONS) this.#hold();
    this.#extensions = this.#extensions
      .then(() => this.#forwardConverted(response))
      .catch((thrown: unknown) => this.#fail(`unreadable xDS message: ${errorText(thrown)}`))
      .finally(() => {
        if (this.#waitingExtensions-- === MAX_WAITING_EXTENSIONS) this.#release("extensions");
      });
  }

  /** What cannot be converted Envoy never sees: it is refused here, and Envoy keeps what it has. */
  async #forwardConverted(response: Buffer): Promise<void> {
    const { kind, convertExtensions, log, id } = this.#input;
    const resources = kind.resources(response);
    if (this.#ended || convertExtensions === undefined) return;
    try {
      const converted = await convertExtensions(resources);
      this.#forward(kind.withResources(response, converted));
    } catch (thrown) {
      const refused = errorText(thrown);
      log.error(`Refused a response of type ecds: ${refused}`, { id });
      const envelope = { ...kind.envelope(response), version: this.#extensionVersion };
      this.#send(kind.acknowledgement(envelope, refused));
    }
  }

  #hold(): void {
    if (this.#holds++ === 0) this.#upstream?.pause();
  }

  #release(reason: "envoy" | "extensions"): void {
    if (reason === "envoy") {
      if (!this.#envoyIsFull) return;
      this.#envoyIsFull = false;
    }
    if (--this.#holds === 0) this.#upstream?.resume();
  }

  /** What ended the stream to the control plane ends Envoy's, so that Envoy starts anew. */
  #endDownstream(failure: Failure | undefined): void {
    const { downstream, upstream, metrics, log, id } = this.#input;
    const expected = failure === undefined || isExpected(failure);
    metrics.istiodTerminations[expected ? "cancelled" : "error"].add();
    if (failure === undefined) {
      log.debug(`stream of ${upstream.address} ended`, { id });
      downstream.end();
      return;
    }
    const { code, details } = failure;
    const say = expected ? log.debug : log.warn;
    say(`upstream terminated with ${expected ? "status" : "unexpected error"} ${status[code]}: ${details}`, { id });
    downstream.emit("error", { code, details });
  }
}

/** Whether there is a connection, as soon as there is one, or when Envoy has gone, or when the time is over. */
async function isConnected(client: Client, downstream: ServerDuplexStream<Buffer, Buffer>): Promise<boolean> {
  let onGone = () => {};
  const gone = new Promise<boolean>((resolve) => {
    onGone = () => resolve(false);
  });
  downstream.once("cancelled", onGone);
  const connected = await Promise.race([isReady(client), gone]);
  downstream.off("cancelled", onGone);
  return connected;
}

/** How streams end when nothing is wrong: given up, or by a control plane that went away in good order. */
function isExpected({ code, details }: Failure): boolean {
  if (code === status.CANCELLED || code === status.DEADLINE_EXCEEDED) return true;
  return /RST_STREAM with (error )?code:? (0|NO_ERROR)|goaway.*NO_ERROR/i.test(details);
}
