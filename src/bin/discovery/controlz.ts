import { addControlzRoutes, type ControlzOptions } from "#debug/controlz.ts";
import type { RootLogger } from "#lib/log.ts";
import { HttpListener } from "#lib/net/http-listener.ts";
import type { ControlzSettings } from "./config.ts";
import { buildInfo } from "./control-plane-name.ts";

export interface ControlzInput extends ControlzSettings, Pick<ControlzOptions, "scopes" | "authenticate" | "seesAll"> {
  readonly revision: string;
  readonly log: Pick<RootLogger, "info">;
}

/** ControlZ on its port. */
export function controlzListener(input: ControlzInput): HttpListener {
  const { address, env, scopes, authenticate, seesAll, revision, log } = input;
  const options: ControlzOptions = {
    scopes,
    env,
    authenticate,
    seesAll,
    args: process.argv.slice(1),
    version: buildInfo(revision),
    exit: () => process.kill(process.pid, "SIGTERM"),
    // To Node itself this signal means to open a debugger.
    signal: (name) => log.info(`received ${name}: nothing to do`),
  };
  return new HttpListener({ flag: "--ctrlz_port", address, routes: (app) => addControlzRoutes(app, options) });
}
