/**
 * Logging in Istio's line format: `time<TAB>level<TAB>[scope<TAB>][caller<TAB>]message<TAB>key=value ...`, or one JSON
 * object per line.
 * A logger is a value that is handed down; there is no global one.
 */
import { oneLine } from "./one-line.ts";

export const LOG_LEVELS = ["none", "fatal", "error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Values that are worth a name of their own instead of a place in the sentence. */
export type LogFields = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export interface LogOptions {
  /** Receives whole lines, with their line end. */
  readonly write: (line: string) => void;
  readonly json?: boolean;
  /** Level by scope; `all` holds for scopes that are not named, else it is info. `default` is a scope like others. */
  readonly levels?: Readonly<Record<string, LogLevel>>;
  /** Scopes whose lines say from where they come; `all` for all of them. */
  readonly callers?: ReadonlySet<string>;
  /** Least severe level that gets a stack trace, by scope; `all` holds for scopes that are not named. */
  readonly stackLevels?: Readonly<Record<string, LogLevel>>;
  readonly now?: () => Date;
}

/**
 * Messages quote what others wrote: names, errors of peers. So their line ends and other control characters are escaped.
 * Text that is to have lines, which must not come from outside, goes behind them as a block.
 */
type Write = (message: string, fields?: LogFields, block?: string) => void;

export interface Logger {
  readonly debug: Write;
  readonly info: Write;
  readonly warn: Write;
  readonly error: Write;
  /** A logger for one area, such as `ads` or `xdsproxy`. */
  scope(name: string): Logger;
}

/** What a scope logs; may be changed while it is in use. */
export interface ScopeSettings {
  level: LogLevel;
  stackLevel: LogLevel;
  callers: boolean;
}

/** A logger with the settings of all scopes that were made from it, by name. */
export interface RootLogger extends Logger {
  readonly scopes: ReadonlyMap<string, ScopeSettings>;
}

/** A logger of scope `default`, whose name is left out of the lines. */
export function createLogger(options: LogOptions): RootLogger {
  const scopes = new Map<string, ScopeSettings>();
  return { ...scopedLogger(options, "default", scopes), scopes };
}

/** A logger that says nothing. */
export const SILENT: Logger = createLogger({ write: () => undefined, levels: { all: "none" } });

/**
 * Reads `default:info,ads:debug`; a bare level is that of `default`, and `all` replaces what stands before it. Nothing at
 * all says nothing; between commas it is no level.
 */
export function parseLogLevels(text: string): { levels: Record<string, LogLevel>; problems: string[] } {
  let levels: Record<string, LogLevel> = {};
  const problems: string[] = [];
  for (const part of text === "" ? [] : text.split(",")) {
    const colon = part.lastIndexOf(":");
    const scope = colon < 0 ? "default" : part.slice(0, colon);
    const level = part.slice(colon + 1);
    if (scope.includes(":")) problems.push(`"${part}" is not of the form scope:level`);
    const known = LOG_LEVELS.find((name) => name === level);
    if (known === undefined) problems.push(`unknown log level "${level}": choose one of ${LOG_LEVELS.join(", ")}`);
    else levels = scope === "all" ? { all: known } : { ...levels, [scope]: known };
  }
  return { levels, problems };
}

function scopedLogger(options: LogOptions, scope: string, scopes: Map<string, ScopeSettings>): Logger {
  const settings = scopes.get(scope) ?? settingsOf(options, scope);
  scopes.set(scope, settings);
  const line = options.json ? jsonLine : textLine;
  const at = (level: LogLevel) => {
    const severity = LOG_LEVELS.indexOf(level);
    return (message: string, fields: LogFields = {}, block = "") => {
      if (severity > LOG_LEVELS.indexOf(settings.level)) return;
      const traced = severity <= LOG_LEVELS.indexOf(settings.stackLevel);
      const named = settings.callers;
      const time = (options.now?.() ?? new Date()).toISOString().replace(/(\d{3})Z$/, "$1000Z");
      const stack = named || traced ? stackHere() : [];
      options.write(
        line({
          time,
          level,
          scope,
          message,
          block,
          fields,
          caller: named ? callerOf(stack[0] ?? "") : "",
          stack: traced ? stack.join("\n") : "",
        }),
      );
    };
  };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    scope: (name) => scopedLogger(options, name, scopes),
  };
}

function settingsOf({ levels, stackLevels, callers }: LogOptions, scope: string): ScopeSettings {
  return {
    level: levelOf(levels, scope, "info"),
    stackLevel: levelOf(stackLevels, scope, "none"),
    callers: (callers?.has(scope) ?? false) || (callers?.has("all") ?? false),
  };
}

function levelOf(levels: LogOptions["levels"], scope: string, fallback: LogLevel): LogLevel {
  return levels?.[scope] ?? levels?.all ?? fallback;
}

/** Where a message comes from, without the frames of this file. */
function stackHere(): readonly string[] {
  const frames = (new Error().stack ?? "").split("\n").slice(1);
  return frames.slice(2).map((frame) => frame.trim());
}

/** `folder/file.ts:12` of a frame. */
function callerOf(frame: string): string {
  const match = /([^/\\(]+[/\\])?([^/\\(]+):(\d+):\d+\)?$/.exec(frame);
  return match === null ? "" : `${match[1] ?? ""}${match[2]}:${match[3]}`;
}

interface Entry {
  readonly time: string;
  readonly level: LogLevel;
  readonly scope: string;
  readonly message: string;
  readonly block: string;
  readonly fields: LogFields;
  /** Empty unless asked for. */
  readonly caller: string;
  readonly stack: string;
}

function textLine({ time, level, scope, message, block, fields, caller, stack }: Entry): string {
  const pairs = Object.entries(fields).filter(([, value]) => value !== undefined);
  const shown = ([key, value]: (typeof pairs)[number]) =>
    `${key}=${oneLine(Array.isArray(value) ? `[${value.join(" ")}]` : String(value))}`;
  const tail = pairs.length === 0 ? "" : `\t${pairs.map(shown).join(" ")}`;
  const name = scope === "default" ? "" : `${scope}\t`;
  const from = caller === "" ? "" : `${caller}\t`;
  return `${time}\t${level}\t${name}${from}${oneLine(message)}${block}${tail}\n${stack === "" ? "" : `${stack}\n`}`;
}

function jsonLine({ time, level, scope, message, block, fields, caller, stack }: Entry): string {
  const name = scope === "default" ? {} : { scope };
  const [from, trace] = [caller === "" ? {} : { caller }, stack === "" ? {} : { stack }];
  return `${JSON.stringify({ level, time, ...name, ...from, msg: `${message}${block}`, ...fields, ...trace })}\n`;
}
