/** Runs one probe against the application, as the kubelet would. */
import { errorText } from "#lib/mesh-error.ts";
import type { Connect } from "../../place.ts";
import type { Answer, IncomingRequest } from "../answer.ts";
import { runHttpProbe } from "./http.ts";
import type { KeptConnections } from "./kept-connections.ts";
import type { AppProbe } from "./parse.ts";

export interface ProbeTarget {
  /** Address of the application. */
  readonly host: string;
  readonly statusPort: number;
  /** Connects from an address that the traffic capture lets pass to the application. */
  readonly connect: Connect;
  /** ISTIO_ENABLE_HTTP2_PROBING: HTTP/2 is offered to those probed over TLS. */
  readonly http2: boolean;
  /** Undefined when each probe has a connection of its own, as the kubelet's have. */
  readonly kept?: KeptConnections | undefined;
}

/** What probes take from the request that asked for them. */
export type ProbingRequest = Pick<IncomingRequest, "headers" | "signal">;

export async function runProbe(probe: AppProbe, request: ProbingRequest, target: ProbeTarget): Promise<Answer> {
  const { timeoutMs } = probe;
  const deadline = new AbortController();
  const late = () => deadline.abort(new Error(`no answer in ${timeoutMs} ms`));
  const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs);
  const signal = AbortSignal.any([request.signal, deadline.signal]);
  const input = { request, target, signal };
  try {
    if (probe.kind === "http") return await runHttpProbe(probe, input);
    if (probe.kind === "tcp") {
      (await target.connect({ host: target.host, port: probe.port }, signal)).destroy();
      return { status: 200 };
    }
    const { checkGrpcHealth } = await import("./grpc.ts");
    return { status: (await checkGrpcHealth(probe, input)) ? 200 : 500 };
  } catch (thrown) {
    return { status: 500, problem: `Request to probe app failed: ${errorText(thrown)}` };
  } finally {
    clearTimeout(timer);
  }
}

/** What each kind of probe needs beside itself. */
export interface ProbeInput {
  readonly request: ProbingRequest;
  readonly target: ProbeTarget;
  readonly signal: AbortSignal;
}
