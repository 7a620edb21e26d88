/**
 * The life of one Envoy: it runs until it exits by itself, and then so does the agent (a kubelet or supervisor starts
 * both again), or until the agent is told to stop. Then it drains: clients are told to go, it keeps its connections for a
 * while, and is killed.
 */

import { formatDuration } from "@mizzen/go-text/duration";
import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { activeConnections, type OwnPorts } from "./active-connections.ts";
import type { EnvoyAdmin } from "./admin.ts";
import { type EnvoyProcess, exitStatus, type ProcessExit } from "./process.ts";

export interface DrainOptions extends OwnPorts {
  /** A sidecar drains what comes from outside; a gateway drains everything. */
  readonly sidecar: boolean;
  readonly terminationDrainMs: number;
  /** EXIT_ON_ZERO_ACTIVE_CONNECTIONS: instead of a fixed time, wait until clients are gone. */
  readonly exitOnZeroActiveConnections: boolean;
  /** MINIMUM_DRAIN_DURATION: before it, connections are not counted. */
  readonly minimumDrainMs: number;
  /** Between two counts of the connections. */
  readonly checkEveryMs: number;
}

export interface EnvoyLifecycleInput {
  readonly envoy: EnvoyProcess;
  readonly admin: EnvoyAdmin;
  readonly drain: DrainOptions;
  readonly log: Logger;
  /** Asks for an end with draining. */
  readonly stop: AbortSignal;
  /** Asks for an end at once. */
  readonly hurry: AbortSignal;
}

const MAX_FAILED_COUNTS = 5;
const COUNT_TIMEOUT_MS = 2_000;

/** Resolves when Envoy is gone, with the status for the agent to exit with. */
export async function runEnvoy(input: EnvoyLifecycleInput): Promise<number> {
  const { envoy, log, stop } = input;
  const startedAt = Date.now();
  log.info("Starting proxy agent");
  const exit = await Promise.race([envoy.exited, aborted(stop)]);
  if (exit !== undefined) {
    reportExit(exit, Date.now() - startedAt, log);
    return exitStatus(exit);
  }
  const gone = AbortSignal.any([input.hurry, exitSignal(envoy)]);
  if (gone.aborted) log.info("Agent already drained, exiting immediately");
  else await drain({ ...input, gone });
  log.warn("Aborting proxy");
  try {
    envoy.kill();
    await envoy.exited;
  } catch (thrown) {
    log.warn(`killing proxy caused an error ${errorText(thrown)}`);
  }
  log.info("Agent has successfully terminated");
  return 0;
}

function reportExit({ code, signal }: ProcessExit, ranMs: number, log: Logger): void {
  const after = `after ${formatDuration(ranMs)}`;
  if (signal === "SIGKILL") log.error(`Envoy was killed ${after}: look at memory use and limits`);
  else if (signal !== null) log.error(`Envoy was ended by ${signal} ${after}`);
  else if (code === 0) log.info(`Envoy exited normally ${after}`);
  else log.error(`Envoy exited with status ${code} ${after}; what it printed above says why`);
}

async function drain(input: EnvoyLifecycleInput & { readonly gone: AbortSignal }): Promise<void> {
  const { admin, log, gone, drain: options } = input;
  log.info("Agent draining Proxy for termination");
  try {
    await admin.drainListeners({ inboundOnly: options.sidecar, skipExit: false });
  } catch (thrown) {
    log.warn(`Envoy cannot be told to drain: ${errorText(thrown)}`);
  }
  if (options.exitOnZeroActiveConnections) await clientsGone(input);
  else {
    log.info(`Graceful termination period is ${formatDuration(options.terminationDrainMs)}, starting...`);
    await sleep(options.terminationDrainMs, gone);
    if (!gone.aborted) log.info("Graceful termination period complete, terminating remaining proxies.");
  }
}

async function clientsGone({
  admin,
  log,
  gone,
  drain: options,
}: EnvoyLifecycleInput & { readonly gone: AbortSignal }): Promise<void> {
  log.info(
    `Agent draining proxy for ${formatDuration(options.minimumDrainMs)}, then waiting for active connections to terminate...`,
  );
  await sleep(options.minimumDrainMs, gone);
  for (let failed = 0; failed < MAX_FAILED_COUNTS; ) {
    await sleep(options.checkEveryMs, gone);
    if (gone.aborted) return;
    try {
      const count = activeConnections(await admin.stats("downstream_cx_active$", COUNT_TIMEOUT_MS), options);
      if (count === undefined || count === 0) {
        log.info("There are no more active connections. terminating proxy...");
        return;
      }
      log.info(`There are still ${count} active connections`);
      failed = 0;
    } catch (thrown) {
      failed++;
      log.warn(
        `Active connections cannot be counted (attempt ${failed} of ${MAX_FAILED_COUNTS}): ${errorText(thrown)}`,
      );
    }
  }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}

function exitSignal(envoy: EnvoyProcess): AbortSignal {
  const gone = new AbortController();
  void envoy.exited.then(() => gone.abort());
  return gone.signal;
}
