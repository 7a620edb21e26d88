/** One stream of Envoy and its counterpart to the control plane. */
import {
  type Client,
  type ClientDuplexStream,
  type ServerDuplexStream,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { errorText } from "#lib/mesh-error.ts";
import { LISTENER_TYPE, shortTypeName } from "#protocol/type-urls.ts";
import { callMetadata, connectControlPlane } from "../control-plane.ts";
import { RAW } from "../unix-server.ts";
import type { XdsProxyOptions } from "./service.ts";
import type { StreamKind } from "./stream-kind.ts";

export interface ProxyStreamInput extends XdsProxyOptions {
  readonly kind: StreamKind;
  readonly downstream: ServerDuplexStream<Buffer, Buffer>;
  /** Counted per agent, for logs. */
  readonly id: number;
  readonly path: string;
}

type Upstream = ClientDuplexStream<Buffer, Buffer>;
type Failure = Pick<ServiceError, "code" | "details">;

/** How long Envoy's stream waits for a connection, which is tried again and again, before it is refused. */
const CONNECT_TIMEOUT_MS = 5_000;

/** Ends, without an error, when both streams have ended. */
export async function proxyStream(input: ProxyStreamInput): Promise<void> {
  const {
    downstream,
    upstream: { address },
    log,
    metrics,
    id,
  } = input;
  let client: Client | undefined;
  try {
    client = await connectControlPlane(input.upstream);
    const connected = await isConnected(client, downstream);
    if (downstream.cancelled) return;
    const metadata = await callMetadata(input.upstream, log);
    if (connected) log.info(`connected to upstream XDS server: ${address}`, { id });
    else metrics.istiodConnectionFailures.add();
    const { requestSerialize, responseDeserialize } = RAW;
    // Without a connection this fails at once, and says why there is none.
    await pump(input, client.makeBidiStreamRequest(input.path, requestSerialize, responseDeserialize, metadata));
  } catch (thrown) {
    endDownstream(input, { code: status.UNAVAILABLE, details: errorText(thrown) });
  } finally {
    client?.close();
  }
}

/** Whether there is a connection, as soon as there is one, or when Envoy has gone, or when the time is over. */
function isConnected(client: Client, downstream: ServerDuplexStream<Buffer, Buffer>): Promise<boolean> {
  return new Promise((resolve) => {
    const onGone = () => resolve(false);
    downstream.once("cancelled", onGone);
    client.waitForReady(Date.now() + CONNECT_TIMEOUT_MS, (error) => {
      downstream.off("cancelled", onGone);
      resolve(error === undefined);
    });
  });
}

/** Passes messages on in both directions until one side ends. */
function pump(input: ProxyStreamInput, upstream: Upstream): Promise<void> {
  const { downstream, metrics } = input;
  return new Promise((resolve) => {
    let ended = false;
    const end = (finish: () => void) => {
      if (ended) return;
      ended = true;
      finish();
      resolve();
    };
    const upstreamGone = (failure: Failure | undefined) => end(() => endDownstream(input, failure));
    const envoyGone = (reason: "cancelled" | "error") => {
      end(() => {
        metrics.envoyTerminations[reason].add();
        upstream.cancel();
      });
    };
    /** A message that cannot be read is the end of a stream, not of the agent. */
    const guarded = (pass: (message: Buffer) => void) => (message: Buffer) => {
      try {
        pass(message);
      } catch (thrown) {
        upstreamGone({ code: status.INTERNAL, details: `unreadable xDS message: ${errorText(thrown)}` });
        upstream.cancel();
      }
    };
    upstream.on("error", upstreamGone);
    upstream.on("end", () => upstreamGone(undefined));
    downstream.on("cancelled", () => envoyGone("cancelled"));
    downstream.on("error", () => envoyGone("error"));
    downstream.on("end", () => {
      envoyGone("cancelled");
      downstream.end();
    });
    const envoyTypes = new Set<string>();
    downstream.on("data", guarded(passRequest(input, upstream, envoyTypes)));
    upstream.on("data", guarded(passResponse(input, upstream, envoyTypes)));
    downstream.on("drain", () => upstream.resume());
  });
}

/** Requests are small: they are queued rather than held back, since both sides waiting for each other would be a deadlock. */
function passRequest({ kind, ownTypes, metrics }: ProxyStreamInput, upstream: Upstream, envoyTypes: Set<string>) {
  const send = (request: Buffer) => {
    metrics.xdsRequests.add();
    upstream.write(request);
  };
  return (request: Buffer): void => {
    const typeUrl = kind.requestType(request);
    const isFirst = !envoyTypes.has(typeUrl);
    envoyTypes.add(typeUrl);
    send(request);
    if (!isFirst || typeUrl !== LISTENER_TYPE) return;
    for (const own of ownTypes.keys()) send(kind.subscription(own));
  };
}

/** Reading pauses while Envoy's side is full, and with it, by flow control, the control plane. */
function passResponse(input: ProxyStreamInput, upstream: Upstream, envoyTypes: ReadonlySet<string>) {
  const { kind, downstream, ownTypes, metrics, log, id } = input;
  return (response: Buffer): void => {
    metrics.xdsResponses.add();
    const typeUrl = kind.responseType(response);
    log.debug("upstream response", { id, type: shortTypeName(typeUrl), bytes: response.length });
    if (ownTypes.has(typeUrl)) handleOwn(input, upstream, response);
    else if (!envoyTypes.has(typeUrl))
      log.error(`Skipping a response of type ${typeUrl}, which Envoy did not ask for`, { id });
    else if (!downstream.write(response)) upstream.pause();
  };
}

function handleOwn({ kind, ownTypes, metrics, log, id }: ProxyStreamInput, upstream: Upstream, bytes: Buffer): void {
  const response = kind.parseResponse(bytes);
  let refused: string | undefined;
  try {
    if (response.resource !== undefined) ownTypes.get(response.typeUrl)?.(response.resource);
  } catch (thrown) {
    refused = errorText(thrown);
    log.error(`Refused a response of type ${shortTypeName(response.typeUrl)}: ${refused}`, { id });
  }
  metrics.xdsRequests.add();
  upstream.write(kind.acknowledgement(response, refused));
}

/** What ended the stream to the control plane ends Envoy's, so that Envoy starts anew. */
function endDownstream(
  { downstream, upstream: { address }, metrics, log, id }: ProxyStreamInput,
  failure: Failure | undefined,
): void {
  const expected =
    failure === undefined || failure.code === status.CANCELLED || failure.code === status.DEADLINE_EXCEEDED;
  metrics.istiodTerminations[expected ? "cancelled" : "error"].add();
  if (failure === undefined) {
    log.debug(`stream of ${address} ended`, { id });
    downstream.end();
    return;
  }
  const { code, details } = failure;
  const say = expected ? log.debug : log.warn;
  say(`stream of ${address} ended with ${status[code]}: ${details}`, { id });
  downstream.emit("error", { code, details });
}
