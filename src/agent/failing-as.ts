import { MeshError } from "#lib/mesh-error.ts";

/** Says which step of the start failed, in the words of Istio's agent; the code stays that of the reason. */
export async function failingAs<T>(step: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw cause instanceof MeshError ? new MeshError(cause.code, step, { cause }) : cause;
  }
}
