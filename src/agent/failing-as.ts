import { MeshError } from "#lib/mesh-error.ts";

/** Steps that begin before Envoy starts and end while it does: both halves fail under one name. */
export const STARTING = {
  identity: "failed to start SDS server: failed to start workload secret manager",
  dns: "failed to start local DNS server",
  xds: "failed to start xds proxy",
} as const;

/** Says which step of the start failed, in the words of Istio's agent; the code stays that of the reason. */
export async function failingAs<T>(step: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw cause instanceof MeshError ? new MeshError(cause.code, step, { cause }) : cause;
  }
}
