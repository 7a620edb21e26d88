import { durationMs, type ProxyConfig } from "#config/proxy-config/proxy-config.ts";
import { isIPv6Only } from "../bootstrap/addresses.ts";

export interface EnvoyArgumentsInput {
  readonly configFile: string;
  readonly proxyConfig: ProxyConfig;
  readonly addresses: readonly string[];
  /** `--proxyLogLevel`: a level, and levels of components such as `misc:error`, in one list. */
  readonly logLevel: string;
  /** `--proxyComponentLogLevel`, used where `logLevel` names no component. */
  readonly componentLogLevel: string;
  readonly skipDeprecatedLogs: boolean;
  /** ISTIO_ENVOY_ENABLE_CORE_DUMP */
  readonly coreDump: boolean;
  /** Content of ISTIO_BOOTSTRAP_OVERRIDE as JSON, laid over the bootstrap. */
  readonly bootstrapOverride?: string | undefined;
  /** With it, another Envoy can take over from this one. */
  readonly hotRestart?: HotRestartArguments | undefined;
}

export interface HotRestartArguments {
  readonly epoch: number;
  /** What all epochs of one proxy have in common: a number, or for the first one the file to write it to. */
  readonly baseId: number | { readonly file: string };
}

/** Beyond the time that an epoch has to drain, for what it still does. */
const SHUTDOWN_AFTER_DRAIN_S = 15;

/** Envoy's own 10 s make access logs seem lost; under load the buffer is full before this anyway. */
const DEFAULT_FLUSH_MS = 1000;

/** Envoy's command line. */
export function envoyArguments(input: EnvoyArgumentsInput): string[] {
  const { proxyConfig, bootstrapOverride } = input;
  const { fileFlushInterval, fileFlushMinSizeKb = 0, concurrency = 0 } = proxyConfig;
  const { level, components } = splitLogLevel(input.logLevel);
  const componentLevels = components.length > 0 ? components.join(",") : input.componentLogLevel;
  const drainSeconds = Math.floor(durationMs(proxyConfig.drainDuration) / 1000);
  const flushMs = fileFlushInterval === undefined ? DEFAULT_FLUSH_MS : Math.floor(durationMs(fileFlushInterval));
  return [
    ["-c", input.configFile],
    ["--drain-time-s", String(drainSeconds)],
    ["--drain-strategy", "immediate"], // clients are told as soon as draining starts
    ["--local-address-ip-version", isIPv6Only(input.addresses) ? "v6" : "v4"],
    ["--file-flush-interval-msec", String(flushMs)],
    hotRestartArguments(input.hotRestart, drainSeconds),
    ["--allow-unknown-static-fields"],
    fileFlushMinSizeKb > 0 ? ["--file-flush-min-size-kb", String(fileFlushMinSizeKb)] : [],
    level === "" ? [] : ["-l", level],
    componentLevels === "" ? [] : ["--component-log-level", componentLevels],
    input.skipDeprecatedLogs ? ["--skip-deprecated-logs"] : [],
    input.coreDump ? ["--enable-core-dump"] : [],
    bootstrapOverride === undefined ? [] : ["--config-yaml", bootstrapOverride],
    concurrency > 0 ? ["--concurrency", String(concurrency)] : [],
  ].flat();
}

function hotRestartArguments(hotRestart: HotRestartArguments | undefined, drainSeconds: number): string[] {
  if (hotRestart === undefined) return ["--disable-hot-restart"];
  const { epoch, baseId } = hotRestart;
  const base =
    typeof baseId === "number"
      ? ["--base-id", String(baseId)]
      : ["--use-dynamic-base-id", "--base-id-path", baseId.file];
  const shutdown = ["--parent-shutdown-time-s", String(drainSeconds + SHUTDOWN_AFTER_DRAIN_S)];
  return ["--restart-epoch", String(epoch), ...base, ...shutdown];
}

const COMPONENT_LEVEL = /^[^:]+:[^:]+$/;

/** Envoy has two settings where Istio's logging has one: `info,misc:error` is level `info` and component `misc:error`. */
export function splitLogLevel(text: string): { readonly level: string; readonly components: readonly string[] } {
  const parts = partsOf(text);
  return {
    level: parts.findLast((part) => !part.includes(":")) ?? "",
    components: parts.filter((part) => COMPONENT_LEVEL.test(part)),
  };
}

/** What is neither. */
export function wrongLogLevels(text: string): readonly string[] {
  return partsOf(text).filter((part) => part.includes(":") && !COMPONENT_LEVEL.test(part));
}

function partsOf(text: string): readonly string[] {
  return text.split(",").map((part) => part.trim());
}
