/** The few bytes by which Envoys that replace one another know of each other: a file of Linux' shared memory. */
import { open, rm } from "node:fs/promises";

/** After two numbers and two locks: what the processes are doing. */
const FLAGS_OFFSET = 96;
const FLAGS_BYTES = 8;

/**
 * Takes back that an Envoy is starting. One that was killed while it started could not do so itself, and Envoy would
 * refuse every later attempt: "previous envoy process is still initializing".
 */
export async function forgetStarting(baseId: number): Promise<void> {
  const file = await open(path(baseId), "r+");
  try {
    await file.write(Buffer.alloc(FLAGS_BYTES), 0, FLAGS_BYTES, FLAGS_OFFSET);
  } finally {
    await file.close();
  }
}

/** Envoy leaves it behind. */
export async function removeSharedMemory(baseId: number): Promise<void> {
  await rm(path(baseId), { force: true });
}

function path(baseId: number): string {
  return `/dev/shm/envoy_shared_memory_${baseId}0`;
}
