import type { status } from "@grpc/grpc-js";
import type { AdsCall } from "./xds-stream.ts";

/** Why a stream ends, as the proxy is told. */
export class Refusal extends Error {
  readonly code: status;

  constructor(code: status, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "Refusal";
    this.code = code;
  }

  /** grpc-js sends this field. */
  get details(): string {
    return this.message;
  }
}

/** Ends a call with that status. What still comes in is thrown away. */
export function refuse(call: AdsCall, reason: Refusal): void {
  call.removeAllListeners("data");
  call.resume();
  call.emit("error", reason);
}
