/**
 * Debug pages over xDS, as agents and istioctl ask for them: a request of type `istio.io/debug` with the name of one page, such
 * as `syncz` or `config_dump?proxyID=httpbin-1.default`. It is answered once, outside of any subscription.
 */
import { status } from "@grpc/grpc-js";
import type { Caller, DebugAnswers } from "#model/ports.ts";
import { formatDeltaResponse, resourceFrame } from "#protocol/delta-response.ts";
import { newSession } from "#protocol/session.ts";
import { formatStateResponse, stateFrame } from "#protocol/state-response.ts";
import { type Dialect, requestIn } from "./dialect.ts";
import { Refusal } from "./refusal.ts";

const DEBUG_TYPE = "istio.io/debug";

/** The page that a request asks for; undefined when it is about something else. */
export function debugQuestion(dialect: Dialect, bytes: Buffer): string | undefined {
  // Nearly all requests are about something else, and need not be read for it.
  if (!bytes.includes(DEBUG_TYPE)) return undefined;
  const { typeUrl, subscribe } = requestIn({ ...dialect, typeUrl: undefined }, bytes, newSession(dialect.kind));
  if (typeUrl !== DEBUG_TYPE) return undefined;
  const [page, ...others] = subscribe;
  if (page !== undefined && others.length === 0) return page;
  throw new Refusal(
    status.INVALID_ARGUMENT,
    `Cannot answer a request for ${subscribe.length} debug pages: ask for one`,
  );
}

/** Who asks, and who answers. */
export interface Asked {
  readonly answers: DebugAnswers;
  readonly caller: Caller | undefined;
}

/** The response with that page. Only callers that proved who they are get one. */
export function debugResponse(page: string, { kind }: Dialect, asked: Asked): Buffer {
  const { answers, caller } = asked;
  if (caller === undefined) {
    throw new Refusal(status.UNAUTHENTICATED, "Debug pages are for callers that prove who they are: use the TLS port");
  }
  const answer = answers(page, caller);
  if ("refused" in answer) throw new Refusal(status.PERMISSION_DENIED, answer.refused);
  const value = Buffer.from(answer.body);
  const common = { typeUrl: DEBUG_TYPE, nonce: "debug", controlPlane: "" };
  if (kind === "state") {
    return formatStateResponse({ ...common, version: "", resources: [stateFrame(DEBUG_TYPE, value)] });
  }
  const frame = resourceFrame(DEBUG_TYPE, { name: page, version: "", value });
  return formatDeltaResponse({ ...common, systemVersion: "", resources: [frame], removed: [] });
}
