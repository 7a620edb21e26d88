/** One stream of Envoy and its counterpart to the control plane. */
import { type ClientCall, CONNECTION_CLOSED } from "#lib/grpc/client.ts";
import { joined, type Pieces } from "#lib/grpc/messages.ts";
import type { ServerCall } from "#lib/grpc/server-call.ts";
import { GrpcError, OK, STATUS, type Status, statusName } from "#lib/grpc/status.ts";
import { errorText } from "#lib/mesh-error.ts";
import { readField, readText } from "#lib/wire/read.ts";
import { EXTENSION_TYPE, LISTENER_TYPE, shortTypeName } from "#protocol/messages/type-urls.ts";
import { callHeaders } from "../control-plane.ts";
import type { QueueBudget, QueueShare } from "../limits/queue-budget.ts";
import type { Connections } from "./connections.ts";
import type { XdsProxyOptions } from "./service.ts";
import { DELTA, type StreamKind } from "./stream-kind.ts";

export interface ProxyStreamInput extends XdsProxyOptions {
  readonly connections: Connections;
  readonly kind: StreamKind;
  readonly downstream: ServerCall;
  /** Counted per agent, for logs. */
  readonly id: number;
  readonly path: string;
  /** For requests that the control plane has not taken yet, of all streams together. */
  readonly budget: QueueBudget;
}

type Connection = Awaited<ReturnType<Connections["take"]>>;
/** Of the agent. */
type Side = "istiod" | "envoy";

/** `istio.v1.HealthInformation`: a request of this type tells how the workload is. */
const HEALTH_TYPE = "type.googleapis.com/istio.v1.HealthInformation";
const WORKLOAD_TYPE = "type.googleapis.com/istio.workload.Workload";
/** How a stream ends whose client sends more than the control plane takes. */
const OVERLOADED: Status = {
  code: STATUS.RESOURCE_EXHAUSTED,
  details: "too many requests wait for the control plane",
};
/** How a stream ended whose client left without a word. */
const CANCELLED: Status = { code: STATUS.CANCELLED, details: "" };
/** Said when files that a connection needs, such as a new root certificate, are of no use. */
const UNUSABLE_OPTIONS = "Failed to init xds proxy dial options";
/** Responses with Wasm modules that wait for them; the control plane has one on its way at a time. */
const MAX_WAITING_EXTENSIONS = 4;

/**
 * States: connecting, then passing messages in both directions until one side ends, which ends the other. Before the
 * control plane closes the connection for good (it announces that), or when its root certificate changed, a connection
 * to take its place is opened first, and Envoy is sent there by ending its stream without an error.
 */
export class ProxyStream {
  readonly #input: ProxyStreamInput;
  /** Envoy has asked for its listeners. */
  #asksForListeners = false;
  #upstream: ClientCall | undefined;
  /** Requests that the control plane has not taken yet. */
  readonly #queued: QueueShare;
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
    this.#queued = input.budget.share();
  }

  /** Ends, without an error, when both streams have ended. */
  async run(): Promise<void> {
    const { connections, upstream: options, downstream, kind, log, metrics, id } = this.#input;
    let connection: Connection | undefined;
    try {
      connection = await connections.take(downstream.gone);
      log.info(`connected to ${kind === DELTA ? "delta " : ""}upstream XDS server: ${options.address}`, { id });
      const headers = await callHeaders(options);
      if (!downstream.gone.aborted) await this.#pump(connection, headers);
    } catch (thrown) {
      if (downstream.gone.aborted) return;
      if (connection === undefined && thrown instanceof GrpcError) {
        log.error(`failed to connect to upstream ${options.address}: ${errorText(thrown)}`, { id });
        metrics.istiodConnectionFailures.add();
      }
      metrics.istiodTerminations.error.add();
      this.#endDownstream("istiod", { code: STATUS.UNAVAILABLE, details: errorText(thrown) });
    } finally {
      connection?.close();
    }
  }

  /** Moves Envoy to a new connection, if there can be one; else it stays where it is. */
  async move(reason: string): Promise<void> {
    const { connections, upstream: options, downstream, log, id } = this.#input;
    try {
      await connections.prepare();
    } catch (thrown) {
      const unreachable = thrown instanceof GrpcError;
      const what = unreachable ? `Cannot prepare another connection to ${options.address}` : UNUSABLE_OPTIONS;
      log.warn(`${what}: ${errorText(thrown)}`, { id });
      return;
    }
    if (this.#ended || this.#upstream === undefined) return;
    log.info(`moving to another connection to ${options.address}: ${reason}`, { id });
    this.#end("istiod", OK, () => {
      this.#upstream?.cancel();
      downstream.end();
    });
  }

  /** Tells how the workload is; before Envoy asked for listeners nobody would know whose health it is. */
  sendHealth(): void {
    const state = this.#input.health?.current;
    if (state !== undefined && this.#asksForListeners)
      this.#send(this.#input.kind.request(HEALTH_TYPE, state.healthy ? undefined : state.message));
  }

  /** A connection that takes no new streams has been told to end. */
  #watchConnection({ ending }: Connection): void {
    const onEnding = () => {
      // A connection that broke ends its stream as well, in a moment.
      setImmediate(() => {
        if (!this.#ended) void this.move("the control plane is closing this one");
      });
    };
    ending.addEventListener("abort", onEnding, { once: true });
    if (ending.aborted) onEnding();
  }

  /** Passes messages on in both directions until one side ends. */
  #pump(connection: Connection, headers: Readonly<Record<string, string>>): Promise<void> {
    const { downstream, path } = this.#input;
    return new Promise((resolve) => {
      this.#onEnd = resolve;
      this.#upstream = connection.call(path, headers, {
        message: this.#guarded("istiod", (response) => this.#onResponse(response)),
        end: (status) => this.#end("istiod", status, () => this.#endDownstream("istiod", status)),
      });
      this.#watchConnection(connection);
      downstream.gone.addEventListener("abort", () => {
        const { reason } = downstream.gone;
        this.#envoyGone(reason instanceof GrpcError ? reason : CANCELLED);
      });
      downstream.serve({
        message: this.#guarded("envoy", (request) => this.#onRequest(request)),
        end: () => {
          this.#envoyGone(OK);
          downstream.end();
        },
        drain: () => this.#release("envoy"),
      });
    });
  }

  #envoyGone(status: Status): void {
    this.#end("envoy", status, () => {
      this.#tellEnd("envoy", status);
      this.#upstream?.cancel();
    });
  }

  #onEnd: () => void = () => undefined;

  /** Each end counts on both sides: on that which did not ask for it as cancelled. */
  #end(by: Side, status: Status, finish: () => void): void {
    if (this.#ended) return;
    this.#ended = true;
    const { istiodTerminations, envoyTerminations } = this.#input.metrics;
    const reason = isExpected(status) ? "cancelled" : "error";
    this.#queued.close();
    istiodTerminations[by === "istiod" ? reason : "cancelled"].add();
    envoyTerminations[by === "envoy" ? reason : "cancelled"].add();
    finish();
    this.#onEnd();
  }

  /** A message that cannot be read is the end of a stream, not of the agent. */
  #guarded(from: Side, pass: (message: Pieces) => void): (message: Pieces) => void {
    return (message) => {
      try {
        if (!this.#ended) pass(message);
      } catch (thrown) {
        this.#fail(from, thrown);
      }
    };
  }

  #fail(from: Side, thrown: unknown): void {
    this.#endBoth(from, { code: STATUS.INTERNAL, details: `unreadable xDS message: ${errorText(thrown)}` });
  }

  #endBoth(by: Side, status: Status): void {
    this.#end(by, status, () => {
      this.#endDownstream(by, status);
      this.#upstream?.cancel();
    });
  }

  /**
   * Requests are small: they are queued rather than held back, since both sides waiting for each other would be a deadlock. A client
   * that sends more than the control plane takes loses its stream.
   */
  #send(request: Uint8Array | Pieces): void {
    if (this.#ended) return;
    const bytes = request instanceof Uint8Array ? request.length : bytesOf(request);
    if (!this.#queued.take(bytes)) {
      this.#endBoth("envoy", OVERLOADED);
      return;
    }
    this.#input.metrics.xdsRequests.add();
    this.#upstream?.send(request, () => this.#queued.give(bytes));
  }

  #onRequest(request: Pieces): void {
    const { kind, ownTypes, metrics, log, id } = this.#input;
    metrics.largestXdsRequest = Math.max(metrics.largestXdsRequest ?? 0, bytesOf(request));
    const typeUrl = kind.requestType(request);
    log.debug("request of Envoy", { id, type: shortTypeName(typeUrl) });
    if (typeUrl === EXTENSION_TYPE)
      this.#extensionVersion = kind.requestVersion(joined(request)) || this.#extensionVersion;
    this.#send(request);
    if (typeUrl !== LISTENER_TYPE || this.#asksForListeners) return;
    this.#asksForListeners = true;
    for (const own of ownTypes.keys()) this.#send(kind.request(own));
    this.sendHealth();
  }

  #onResponse(response: Pieces): void {
    const { kind, ownTypes, convertExtensions, metrics, log, id } = this.#input;
    metrics.xdsResponses.add();
    const typeUrl = kind.responseType(response);
    log.debug("upstream response", { id, type: shortTypeName(typeUrl) });
    if (ownTypes.has(typeUrl)) this.#handleOwn(joined(response));
    else if (!isForEnvoy(typeUrl)) log.error(`Skipping a response of type ${typeUrl}, which is not for Envoy`, { id });
    else if (typeUrl === EXTENSION_TYPE && convertExtensions !== undefined) this.#queueExtensions(joined(response));
    else this.#forward(response);
  }

  /** Reading pauses while Envoy's side is full, and with it, by flow control, the control plane. */
  #forward(response: Uint8Array | Pieces): void {
    if (this.#ended || this.#input.downstream.send(response) || this.#envoyIsFull) return;
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
      .catch((thrown: unknown) => this.#fail("istiod", thrown))
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

  /** Ends Envoy's stream with what went wrong on a side, so that Envoy starts anew. */
  #endDownstream(by: Side, status: Status): void {
    this.#tellEnd(by, status);
    this.#input.downstream.end(status);
  }

  #tellEnd(side: Side, status: Status): void {
    const { log, id } = this.#input;
    const expected = isExpected(status);
    const say = expected ? log.debug : log.warn;
    const how = `terminated with ${expected ? "status" : "unexpected error"} ${statusName(status.code)}`;
    const why = status.details === "" ? "" : `: ${status.details}`;
    say(`${side === "istiod" ? "upstream" : "downstream"} ${how}${why}`, { id });
  }
}

function bytesOf(pieces: Pieces): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** Types that Envoy has, and that of workloads, from which Istio's Envoy learns about peers. */
function isForEnvoy(typeUrl: string): boolean {
  return typeUrl.startsWith("type.googleapis.com/envoy.") || typeUrl === WORKLOAD_TYPE;
}

/** How streams end when nothing is wrong: given up, or by a control plane that went away in good order. */
function isExpected({ code, details }: Status): boolean {
  if (code === STATUS.OK || code === STATUS.CANCELLED || code === STATUS.DEADLINE_EXCEEDED) return true;
  if (code === STATUS.UNAVAILABLE && details === CONNECTION_CLOSED) return true;
  return /RST_STREAM with (error )?code:? (0|NO_ERROR)|goaway.*NO_ERROR/i.test(details);
}
