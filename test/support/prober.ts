/** Asks one address again and again, in a thread of its own: its figures must not contain the delays of an attacker beside it. */
import { once } from "node:events";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

const EVERY_MS = 25;
const PATIENCE_MS = 10_000;
/** A connection for each probe, as by a kubelet. */
const CLOSE = { connection: "close" };

export class Prober {
  readonly #worker: Worker;

  constructor(url: string) {
    this.#worker = new Worker(new URL(import.meta.url), { workerData: { url } });
  }

  /** Resolves with the first answer. */
  async started(): Promise<void> {
    await once(this.#worker, "message");
  }

  /** Milliseconds until each answer with status 200; infinite for other answers and none. */
  async stop(): Promise<readonly number[]> {
    this.#worker.postMessage("stop");
    const [latencies] = (await once(this.#worker, "message")) as [readonly number[]];
    await this.#worker.terminate();
    return latencies;
  }
}

if (!isMainThread && parentPort !== null && typeof Object(workerData).url === "string") {
  const port = parentPort;
  let isOver = false;
  port.on("message", () => {
    isOver = true;
  });
  const latencies: number[] = [];
  await asked(Object(workerData).url);
  port.postMessage("started");
  do {
    latencies.push(await asked(Object(workerData).url));
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  } while (!isOver);
  port.postMessage(latencies);
}

/** As a kubelet does, it asks once more before it takes a connection that was cut for a failure. */
async function asked(url: string): Promise<number> {
  const start = performance.now();
  const isReady = (await statusOf(url)) === 200 || (await statusOf(url)) === 200;
  return isReady ? performance.now() - start : Number.POSITIVE_INFINITY;
}

async function statusOf(url: string): Promise<number | undefined> {
  const response = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS), headers: CLOSE }).catch(
    () => undefined,
  );
  await response?.arrayBuffer();
  return response?.status;
}
