import { type Command, Option } from "commander";
import { VERSION_TEXT } from "#lib/command/version-command.ts";
import type { Env } from "#lib/env/env-table.ts";
import type { Logger } from "#lib/log/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { parseAgentConfig } from "../agent-config.ts";
import { DEBUG_SOCKET } from "../debug-socket/path.ts";
import type { ProxyFlags } from "../prepare.ts";
import { addLogFlags, flagLines, loggerOf } from "./log-flags.ts";
import { TolerantCommand } from "./tolerant-command.ts";
import { LARGEST_INT32, wholeNumber } from "./whole-number.ts";

/** `proxy [sidecar|router]`. Unknown flags are tolerated: old installations still pass flags that are long gone. */
export function proxyCommand(env: Env): Command {
  const command = new TolerantCommand("proxy")
    .description("XDS proxy agent")
    .usage("[options]")
    .argument("[type]", "sidecar or router", "sidecar")
    .option("--concurrency <int>", "number of worker threads to run", wholeNumber("--concurrency", LARGEST_INT32), 0)
    // biome-ignore lint/suspicious/noTemplateCurlyInString: that is how a shell would write it
    .option("--domain <string>", "DNS domain suffix. If not provided uses ${POD_NAMESPACE}.svc.cluster.local", "")
    .option(
      "--meshConfig <string>",
      "File name for Istio mesh configuration. If not specified, a default mesh will be used. This may be overridden by " +
        "PROXY_CONFIG environment variable or proxy.istio.io/config annotation.",
      "./etc/istio/config/mesh",
    )
    .option("--outlierLogPath <string>", "The log path for outlier detection", "")
    .option("--profiling", `Enable profiling on the unix socket ${DEBUG_SOCKET}, under /debug/pprof/.`, false)
    .addOption(new Option("--no-profiling").hideHelp())
    .option(
      "--proxyComponentLogLevel <string>",
      "The component log level used to start the Envoy proxy. Deprecated, use proxyLogLevel instead",
      "",
    )
    .option(
      "--proxyLogLevel <string>",
      "The log level used to start the Envoy proxy (choose from {trace, debug, info, warning, error, critical, off}). " +
        "Level may also include one or more scopes, such as 'info,misc:error,upstream:debug'",
      "warning",
    )
    .option("--serviceCluster <string>", "Service cluster", "istio-proxy")
    .option(
      "--stsPort <int>",
      "HTTP Port on which to serve Security Token Service (STS). If zero, STS service will not be provided.",
      wholeNumber("--stsPort", 65_535),
      0,
    )
    .option("--templateFile <string>", "Go template bootstrap config", "")
    .option("--tokenManagerPlugin <string>", "Token provider specific plugin name.", "GoogleTokenExchange")
    .allowExcessArguments();
  return addLogFlags(command).action((type: string, _: object, self: Command) => runProxy(type, self, env));
}

async function runProxy(type: string, command: Command, env: Env): Promise<void> {
  const log = loggerOf(command);
  for (const line of flagLines(command)) log.info(line);
  log.info(`Version ${VERSION_TEXT}`);
  if (type !== "sidecar" && type !== "router") {
    throw new MeshError("PROXY_TYPE_INVALID", `invalid proxy Type: ${type}: it must be sidecar or router`);
  }
  const { config, problems, warnings } = parseAgentConfig(env);
  if (problems.length > 0) throw new MeshError("ENVIRONMENT_INVALID", problems.join("; "));
  for (const warning of warnings) log.warn(warning);
  const flags: ProxyFlags = { ...command.opts(), type, logAsJson: command.optsWithGlobals().log_as_json === true };
  const { stop, hurry } = endSignals(log);
  const reload = new EventTarget();
  if (config.envoy.hotRestart) process.on("SIGHUP", () => reload.dispatchEvent(new Event("reload")));
  const { runAgent } = await import("../agent.ts");
  const { HERE } = await import("../place.ts");
  const startedAt = Date.now() - 1000 * process.uptime();
  const status = await runAgent({ flags, config, env, log, stop, hurry, reload, startedAt, place: HERE });
  process.exit(process.exitCode ?? status);
}

/** The first signal asks for an end with draining, the second for one at once. A bug ends Envoy as well. */
export function endSignals(log: Logger): { readonly stop: AbortSignal; readonly hurry: AbortSignal } {
  const stop = new AbortController();
  const hurry = new AbortController();
  const onSignal = () => (stop.signal.aborted ? hurry : stop).abort();
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  process.on("uncaughtException", (error) => {
    log.error("The agent ends because of a bug: ", {}, error.stack ?? error.message);
    process.exitCode = 1;
    stop.abort();
    hurry.abort();
  });
  return { stop: stop.signal, hurry: hurry.signal };
}
