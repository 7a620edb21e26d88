/** How calls end: codes, their names, and their form in headers and trailers. */
import { constants, type IncomingHttpHeaders } from "node:http2";

/** The codes of gRPC, by name. */
export const STATUS = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

/** How a call ended. */
export interface Status {
  readonly code: number;
  readonly details: string;
}

/** The end of a call that went well. */
export const OK: Status = { code: STATUS.OK, details: "" };

/** A call that did not go well. */
export class GrpcError extends Error implements Status {
  readonly code: number;

  constructor(code: number, details: string, options?: ErrorOptions) {
    super(details, options);
    this.code = code;
  }

  get details(): string {
    return this.message;
  }
}

/** The name of a code, such as `UNAVAILABLE`; the number itself where it has none. */
export function statusName(code: number): string {
  return Object.entries(STATUS).find(([, value]) => value === code)?.[0] ?? String(code);
}

/** As trailers; the message in percent encoding, as the protocol wants it. */
export function statusHeaders({ code, details }: Status): Record<string, string> {
  const message = details.replace(/[^ -$&-~]+/gu, (text) => encodeURIComponent(text.toWellFormed()));
  return { "grpc-status": String(code), ...(message === "" ? {} : { "grpc-message": message }) };
}

/** From headers or trailers; undefined when they have none. */
export function statusOfHeaders(headers: IncomingHttpHeaders): Status | undefined {
  const code = headers["grpc-status"];
  if (code === undefined) return undefined;
  const number = Number(code);
  const details = decoded(String(headers["grpc-message"] ?? ""));
  return { code: Number.isInteger(number) && number >= 0 ? number : STATUS.UNKNOWN, details };
}

function decoded(message: string): string {
  try {
    return decodeURIComponent(message);
  } catch {
    return message; // whoever sent it does not encode
  }
}

const OF_HTTP: Readonly<Record<number, number>> = {
  400: STATUS.INTERNAL,
  401: STATUS.UNAUTHENTICATED,
  403: STATUS.PERMISSION_DENIED,
  404: STATUS.UNIMPLEMENTED,
  429: STATUS.UNAVAILABLE,
  502: STATUS.UNAVAILABLE,
  503: STATUS.UNAVAILABLE,
  504: STATUS.UNAVAILABLE,
};

/** What an answer of HTTP says that is none of gRPC. */
export function statusOfHttp(httpStatus: number): Status {
  return { code: OF_HTTP[httpStatus] ?? STATUS.UNKNOWN, details: `Received HTTP status code ${httpStatus}` };
}

const OF_RESET: Readonly<Record<number, number>> = {
  [constants.NGHTTP2_REFUSED_STREAM]: STATUS.UNAVAILABLE,
  [constants.NGHTTP2_CANCEL]: STATUS.CANCELLED,
  [constants.NGHTTP2_ENHANCE_YOUR_CALM]: STATUS.RESOURCE_EXHAUSTED,
  [constants.NGHTTP2_INADEQUATE_SECURITY]: STATUS.PERMISSION_DENIED,
};

/** What a stream says that was reset before any status came. */
export function statusOfReset(rstCode: number): Status {
  return { code: OF_RESET[rstCode] ?? STATUS.INTERNAL, details: `Received RST_STREAM with code ${rstCode}` };
}
