/**
 * Questions about the control plane over xDS, answered once and outside of any subscription:
 *
 *     istio.io/debug               the debug page that is named, `syncz` or `config_dump?proxyID=httpbin-1.default`, as text
 *     istio.io/debug/syncz         the state of all proxies, in Envoy's messages: `istioctl proxy-status`, `istioctl version`
 *     istio.io/debug/config_dump   the configuration of the proxy that is named, in Envoy's messages
 */
import { STATUS } from "#lib/grpc/status.ts";
import type { Caller, DebugAnswers, StatusAnswers } from "#model/ports.ts";
import { formatDeltaResponse, resourceFrame } from "#protocol/messages/delta-response.ts";
import { formatStateResponse, stateFrame } from "#protocol/messages/state-response.ts";
import { DEBUG_TYPE } from "#protocol/messages/type-urls.ts";
import { newSession } from "#protocol/session.ts";
import { type Dialect, envelopeIn, requestIn } from "./dialect.ts";
import { Refusal } from "./refusal.ts";

const DEBUG_BYTES = Buffer.from(DEBUG_TYPE);
/** Of all answers. */
const NONCE = "debug";

/** What is asked. */
export interface DebugQuestion {
  readonly typeUrl: string;
  readonly names: readonly string[];
  /** It acknowledges what was answered, and asks for nothing. */
  readonly isAnswer: boolean;
}

/** The question in a request; undefined when it is about something else. */
export function debugQuestion(dialect: Dialect, bytes: Buffer): DebugQuestion | undefined {
  // Nearly all requests are about something else, and need not be read for it.
  if (!bytes.includes(DEBUG_BYTES)) return undefined;
  const request = requestIn({ ...dialect, typeUrl: undefined }, bytes, newSession(dialect.kind));
  const { typeUrl, subscribe: names } = request;
  if (typeUrl !== DEBUG_TYPE && !typeUrl.startsWith(`${DEBUG_TYPE}/`)) return undefined;
  // istioctl gives its first question a nonce of its own.
  return { typeUrl, names, isAnswer: envelopeIn(dialect, bytes).nonce === NONCE };
}

/** Who asks, and who answers. */
export interface Asked {
  readonly dialect: Dialect;
  readonly caller: Caller | undefined;
  readonly debug?: DebugAnswers;
  readonly status?: StatusAnswers;
  readonly controlPlane?: string;
}

interface Answer {
  readonly name: string;
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

/** The response to a question. Only callers that proved who they are get one. */
export function debugResponse(question: DebugQuestion, asked: Asked): Buffer {
  const { caller, dialect, controlPlane = "" } = asked;
  if (caller === undefined) {
    throw new Refusal(STATUS.UNAUTHENTICATED, "Debug pages are for callers that prove who they are: use the TLS port");
  }
  const { typeUrl, names } = question;
  const page = typeUrl.slice(DEBUG_TYPE.length + 1);
  const answers = page === "" ? pageAnswer(names, caller, asked) : (asked.status?.({ page, names }, caller) ?? []);
  const common = { typeUrl, nonce: NONCE, controlPlane };
  if (dialect.kind === "state") {
    const resources = answers.map((answer) => stateFrame(answer.typeUrl, answer.value));
    return formatStateResponse({ ...common, version: "debug", resources });
  }
  const frames = answers.map((answer) => resourceFrame(answer.typeUrl, { ...answer, version: "" }));
  return formatDeltaResponse({ ...common, systemVersion: "debug", resources: frames, removed: [] });
}

function pageAnswer(names: readonly string[], caller: Caller, { debug }: Asked): readonly Answer[] {
  const [page, ...others] = names;
  if (page === undefined || others.length > 0) {
    const message = `Cannot answer a request for ${names.length} debug pages: ask for one`;
    throw new Refusal(STATUS.INVALID_ARGUMENT, message);
  }
  const answer = debug?.(page, caller) ?? { refused: "There are no debug pages here" };
  if ("refused" in answer) throw new Refusal(STATUS.PERMISSION_DENIED, answer.refused);
  return [{ name: page, typeUrl: DEBUG_TYPE, value: Buffer.from(answer.body) }];
}
