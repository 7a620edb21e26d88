/** Calls again and again until every call has arrived where it must. */
import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log/log.ts";
import { type Arrival, startCall } from "./dial.ts";
import type { Account } from "./identity.ts";
import { formatEndpoint } from "./listeners.ts";
import type { Probe } from "./probes.ts";

export interface AttemptInput {
  readonly probes: readonly Probe[];
  /** What Envoy's stand-in answers with. */
  readonly greeting: string;
  readonly account: Account;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** A call that did not arrive, and what became of its last attempt. */
export interface Miss {
  readonly probe: Probe;
  readonly outcome: string;
}

/** Rules may appear at any moment, and only a new connection meets them. */
const ROUND_MS = 1_000;

/** Those that have not arrived when the signal is aborted. */
export async function missesUntil(input: AttemptInput): Promise<readonly Miss[]> {
  let misses: readonly Miss[] = input.probes.map((probe) => ({ probe, outcome: "nobody answered" }));
  while (misses.length > 0 && !input.signal.aborted) {
    const pause = sleep(ROUND_MS, input.signal);
    misses = await round(
      input,
      misses.map(({ probe }) => probe),
    );
    if (misses.length > 0) await pause;
  }
  return misses;
}

async function round(input: AttemptInput, probes: readonly Probe[]): Promise<readonly Miss[]> {
  const { account, greeting, log, signal } = input;
  const limit = AbortSignal.any([signal, AbortSignal.timeout(ROUND_MS)]);
  const calls: { readonly probe: Probe; readonly arrival: Promise<Arrival> }[] = [];
  for (const probe of probes) {
    const call = await account.as(probe.caller, () => startCall(probe.to, probe.from));
    calls.push({ probe, arrival: call.arrival(greeting, limit) });
  }
  const misses: Miss[] = [];
  for (const { probe, arrival } of calls) {
    const outcome = missOf(await arrival, probe);
    if (outcome === undefined) continue;
    log.error(`Error connecting to ${formatEndpoint(probe.to)}: ${outcome}`);
    misses.push({ probe, outcome });
  }
  return misses;
}

/** What went wrong; undefined when the call arrived where it must. */
function missOf(arrival: Arrival, { envoy }: Probe): string | undefined {
  if ("failure" in arrival) return arrival.failure;
  return arrival.port === envoy.port ? undefined : `it arrived at port ${arrival.port}`;
}
