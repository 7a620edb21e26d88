import { GrpcError } from "#lib/grpc/status.ts";

/** Why a stream ends, as the proxy is told. */
export class Refusal extends GrpcError {
  override readonly name = "Refusal";
}
