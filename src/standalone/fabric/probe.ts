/** Readiness, asked from the fabric as a kubelet would: from an address that the capture rules let pass. */
import { get } from "node:http";
import { connect } from "node:net";
import { sleep } from "#lib/async/sleep.ts";
import { errorText } from "#lib/mesh-error.ts";

export interface Target {
  readonly address: string;
  readonly port: number;
  /** Asked by HTTP when given; an accepted connection is enough otherwise. */
  readonly httpGet?: { readonly path: string; readonly headers: Readonly<Record<string, string>> } | undefined;
  readonly timeoutMs: number;
  /** Address to ask from. */
  readonly from?: string | undefined;
}

/** Undefined when ready, else why not. */
export type ProbeResult = string | undefined;

/** Asks once. */
export function probe(target: Target): Promise<ProbeResult> {
  return target.httpGet === undefined ? probeTcp(target) : probeHttp(target, target.httpGet);
}

function probeTcp({ address, port, timeoutMs, from }: Target): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, ...(from === undefined ? {} : { localAddress: from }) });
    const finish = (result: ProbeResult) => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(timeoutMs, () => finish(`no connection in ${timeoutMs} ms`));
    socket.once("connect", () => finish(undefined));
    socket.once("error", (error) => finish(reasonOf(error, { address, port })));
  });
}

function probeHttp(target: Target, { path, headers }: NonNullable<Target["httpGet"]>): Promise<ProbeResult> {
  const { address, port, timeoutMs, from } = target;
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const request = get(
      {
        host: address,
        port,
        path,
        headers: { "user-agent": "kube-probe/1.33", ...headers },
        agent: false,
        signal,
        ...(from === undefined ? {} : { localAddress: from }),
      },
      (response) => {
        const status = response.statusCode ?? 0;
        response.destroy();
        resolve(status >= 200 && status < 400 ? undefined : `HTTP ${status}`);
      },
    );
    request.once("error", (error) =>
      resolve(signal.aborted ? `no answer in ${timeoutMs} ms` : reasonOf(error, target)),
    );
  });
}

/** The most frequent of all mistakes is to listen on loopback. */
function reasonOf(error: Error, { address, port }: Pick<Target, "address" | "port">): string {
  if (!("code" in error) || error.code !== "ECONNREFUSED") return errorText(error);
  return `nothing listens on port ${port} of ${address} (127.0.0.1 alone is not enough)`;
}

export interface ProbeTiming {
  readonly initialDelayMs: number;
  readonly periodMs: number;
  readonly failureThreshold: number;
  readonly successThreshold: number;
}

/** How often a member that is not ready yet is asked: a person waits for it. */
const EAGER_PERIOD_MS = 100;

/** Asks for ever, and tells each change: ready at first success, not ready after several failures in a row. */
export async function watchReadiness(
  input: {
    readonly ask: () => Promise<ProbeResult>;
    readonly timing: ProbeTiming;
    readonly onChange: (result: ProbeResult) => void;
    /** Called with each failure of what is not ready. */
    readonly onWaiting?: (reason: string) => void;
  },
  signal: AbortSignal,
): Promise<void> {
  const { ask, timing, onChange, onWaiting } = input;
  let ready = false;
  let inARow = 0;
  await sleep(timing.initialDelayMs, signal);
  while (!signal.aborted) {
    const result = await ask();
    if (signal.aborted) return;
    const differs = (result === undefined) !== ready;
    inARow = differs ? inARow + 1 : 0;
    if (differs && inARow >= (ready ? timing.failureThreshold : timing.successThreshold)) {
      ready = !ready;
      inARow = 0;
      onChange(result);
    }
    if (!ready && result !== undefined) onWaiting?.(result);
    await sleep(ready ? timing.periodMs : Math.min(EAGER_PERIOD_MS, timing.periodMs), signal);
  }
}
