/** Runs Envoy: one for the life of the agent, or, with hot restart, one after another. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFile, rm, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { durationMs } from "#config/proxy-config/proxy-config.ts";
import { makeFolder } from "#lib/files/make-folder.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { AgentContext } from "./agent-context.ts";
import { WORKLOAD_SOCKET_FOLDER } from "./bootstrap/clusters.ts";
import { writePrivately } from "./bootstrap/write.ts";
import { hotRestartVersion, validationProblem } from "./envoy/ask-program.ts";
import { Epochs } from "./envoy/epochs.ts";
import { HotRestart, type PlannedLaunch } from "./envoy/hot-restart.ts";
import { type DrainOptions, runEnvoy } from "./envoy/lifecycle.ts";
import { type EnvoyProcess, startEnvoy } from "./envoy/process.ts";
import { forgetStarting, removeSharedMemory } from "./envoy/shared-memory.ts";
import { watchFiles } from "./file-watch.ts";
import { handOver } from "./hand-over.ts";
import { pathIn } from "./place.ts";
import { prepare } from "./prepare.ts";
import { type EnvoyPlan, envoyUser, planEnvoy } from "./start-envoy.ts";
import { servesEpoch } from "./status/envoy-readiness.ts";

const READY_TIMEOUT_MS = 60_000;
const READY_CHECK_MS = 200;
/** Files of one change, such as a program that is copied, are seldom there at one moment. */
const INPUT_DEBOUNCE_MS = 500;
const BASE_ID_FILE = "base-id";
const NEXT_BOOTSTRAP = "envoy-rev.next.json";

/** An Envoy that was started. */
export interface ProxyRun {
  /** Resolves with the status to exit with. `drained` is aborted when Envoy has been told to drain already. */
  run(drained: AbortSignal): Promise<number>;
}

export async function startProxy(context: AgentContext): Promise<ProxyRun> {
  const { config, stop } = context;
  if (config.envoy.disabled) {
    return {
      run: async () => {
        if (!stop.aborted) await once(stop, "abort");
        return 0;
      },
    };
  }
  const started = config.envoy.hotRestart ? await startEpochs(context) : await startSingle(context);
  return { run: async (drained) => (started === undefined ? 0 : runStarted(context, started, drained)) };
}

async function runStarted(context: AgentContext, started: StartedEnvoy, drained: AbortSignal): Promise<number> {
  const { log, admin, stop, hurry } = context;
  try {
    return await runEnvoy({
      envoy: started.envoy,
      admin,
      log,
      stop,
      // What is drained already has nothing to wait for.
      hurry: AbortSignal.any([hurry, drained]),
      drain: drainOptions(context),
    });
  } finally {
    await started.cleanup();
  }
}

interface StartedEnvoy {
  readonly envoy: EnvoyProcess;
  readonly cleanup: () => Promise<void>;
}

function drainOptions({ config, proxyConfig, flags }: AgentContext): DrainOptions {
  return {
    sidecar: flags.type === "sidecar",
    terminationDrainMs: durationMs(proxyConfig.terminationDrainDuration),
    exitOnZeroActiveConnections: config.envoy.exitOnZeroActiveConnections,
    minimumDrainMs: config.envoy.minimumDrainMs,
    checkEveryMs: 1_000,
    envoyStatusPort: config.envoy.statusPort,
    envoyPrometheusPort: config.envoy.prometheusPort,
  };
}

async function startSingle(context: AgentContext): Promise<StartedEnvoy | undefined> {
  const plan = await planEnvoy(context);
  if (context.stop.aborted) return undefined;
  const envoy = await startPlanned(context, plan, plan.command(plan.configFile));
  return {
    envoy,
    cleanup: async () => {
      if (plan.written) await rm(pathIn(context.place, plan.configFile), { force: true });
    },
  };
}

async function startPlanned(
  context: AgentContext,
  { configFile }: Pick<EnvoyPlan, "configFile">,
  command: ReturnType<EnvoyPlan["command"]>,
): Promise<EnvoyProcess> {
  const { place, config, proxyConfig, log } = context;
  const user = envoyUser(context);
  if (user !== undefined) {
    const sockets = [join(proxyConfig.configPath, "XDS"), join(WORKLOAD_SOCKET_FOLDER, config.identity.socketFile)];
    const paths = [configFile, ...sockets].map((path) => pathIn(place, path));
    await handOver(paths, { user, below: place.folder === "" ? "." : place.folder });
  }
  log.info(`Envoy command: [${command.args.join(" ")}]`);
  return startEnvoy(command);
}

async function startEpochs(context: AgentContext): Promise<StartedEnvoy | undefined> {
  const { log, admin, place, proxyConfig, done } = context;
  const baseIdFile = join(proxyConfig.configPath, BASE_ID_FILE);
  const baseId = async () => Number(await readFile(pathIn(place, baseIdFile), "utf8"));
  makeFolder(pathIn(place, proxyConfig.configPath), 0o700);
  const launchOf = (again: AgentContext) => plannedLaunch(again, { baseId, baseIdFile });
  const first = await launchOf(context);
  if (context.stop.aborted) return undefined;
  const epochs = await Epochs.start(first, {
    isReady: (epoch) => servesEpoch(admin, epoch),
    forgetStarting: async () => forgetStarting(await baseId()),
    log,
    readyTimeoutMs: READY_TIMEOUT_MS,
    checkEveryMs: READY_CHECK_MS,
  });
  const ending = AbortSignal.any([context.stop, done]);
  const restarts = new HotRestart({
    first,
    plan: async () => launchOf(await preparedAgain(context)),
    replace: (launch) => epochs.replace(launch),
    draining: () => epochs.draining(),
    log,
    signal: ending,
  });
  context.reload.addEventListener("reload", () => restarts.request("asked"), { signal: ending });
  const unwatch = watchFiles(inputFiles(context), {
    debounceMs: INPUT_DEBOUNCE_MS,
    onChange: () => restarts.request("changed"),
    onFailure: (thrown) => log.warn(`Cannot watch what Envoy is started with: ${errorText(thrown)}`),
  });
  ending.addEventListener("abort", unwatch, { once: true });
  return {
    envoy: epochs,
    cleanup: async () => {
      await epochs.gone();
      await removeSharedMemory(await baseId()).catch(() => undefined); // An Envoy that never began left none.
      await rm(pathIn(place, baseIdFile), { force: true });
    },
  };
}

/** Files that decide what Envoy is started with. */
function inputFiles({ proxyConfig, config, flags, place }: AgentContext): string[] {
  const { binaryPath, customConfigFile = "", proxyBootstrapTemplatePath = "" } = proxyConfig;
  const { bootstrapOverrideFile, bootstrapTemplate } = config.envoy;
  const templates = [bootstrapTemplate, proxyBootstrapTemplatePath];
  const files = [customConfigFile, bootstrapOverrideFile, ...templates, flags.meshConfig];
  const pod = ["./etc/istio/pod/annotations", "./etc/istio/pod/labels"];
  return [binaryPath, ...[...files, ...pod].filter((file) => file !== "").map((file) => pathIn(place, file))];
}

/** The configuration as it is now. What the agent itself has opened stays as it is, so it must not change. */
async function preparedAgain(context: AgentContext): Promise<AgentContext> {
  const prepared = await prepare(context, context.servedByOthers);
  const { proxyAdminPort, statusPort, configPath } = context.proxyConfig;
  const changed = Object.entries({ proxyAdminPort, statusPort, configPath }).find(
    ([field, value]) => prepared.proxyConfig[field as "configPath"] !== value,
  );
  if (changed === undefined) return { ...context, ...prepared };
  throw new MeshError(
    "HOT_RESTART_IMPOSSIBLE",
    `ProxyConfig.${changed[0]} changed, for which the agent must be restarted`,
  );
}

interface BaseId {
  readonly baseId: () => Promise<number>;
  readonly baseIdFile: string;
}

async function plannedLaunch(context: AgentContext, { baseId, baseIdFile }: BaseId): Promise<PlannedLaunch> {
  const { place, proxyConfig } = context;
  const { binaryPath, configPath } = proxyConfig;
  const plan = await planEnvoy(context, NEXT_BOOTSTRAP);
  const planned = pathIn(place, plan.configFile);
  const text = await readFile(planned, "utf8");
  if (plan.written) await rm(planned);
  const version = await hotRestartVersion(binaryPath);
  // Envoy tells the format of a file by its name.
  const named = (name: string) => join(configPath, `${name}${extname(plan.configFile)}`);
  const fileOf = (epoch: number) => (plan.written ? named(`envoy-rev${epoch}`) : plan.configFile);
  const write = async (file: string) => {
    if (plan.written) await writePrivately(pathIn(place, file), text);
  };
  return {
    fingerprint: await fingerprint(binaryPath, [text, ...plan.command("").args]),
    hotRestartVersion: version,
    start: async (epoch) => {
      const file = fileOf(epoch);
      await write(file);
      const command = plan.command(file, { epoch, baseId: epoch === 0 ? { file: baseIdFile } : await baseId() });
      return startPlanned(context, { configFile: file }, command);
    },
    cleanup: async (epoch) => {
      if (plan.written) await rm(pathIn(place, fileOf(epoch)), { force: true });
    },
    problem: async (running) => {
      if (version !== running.hotRestartVersion)
        return `Envoy ${binaryPath} has hot-restart version ${version}, the running one ${running.hotRestartVersion}`;
      const file = named("envoy-rev.next");
      await write(file);
      try {
        return await validationProblem(plan.command(plan.written ? file : plan.configFile));
      } finally {
        if (plan.written) await rm(pathIn(place, file), { force: true });
      }
    },
  };
}

async function fingerprint(binaryPath: string, parts: readonly string[]): Promise<string> {
  const { dev, ino, size, mtimeMs } = await stat(binaryPath);
  return createHash("sha256")
    .update(JSON.stringify([dev, ino, size, mtimeMs, ...parts]))
    .digest("hex");
}
