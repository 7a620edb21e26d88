/**
 * Logging in Istio's line format: `time<TAB>level<TAB>[scope<TAB>]message<TAB>key=value ...`, or one JSON object per line.
 * A logger is a value that is handed down; there is no global one.
 */

export const LOG_LEVELS = ["none", "fatal", "error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Values that are worth a name of their own instead of a place in the sentence. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

export interface LogOptions {
  /** Receives whole lines, with their line end. */
  readonly write: (line: string) => void;
  readonly json?: boolean;
  /** Level by scope; `default` holds for scopes that are not named. */
  readonly levels?: Readonly<Record<string, LogLevel>>;
  readonly now?: () => Date;
}

export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger for one area, such as `ads` or `xdsproxy`. */
  scope(name: string): Logger;
}

/** A logger of scope `default`, whose name is left out of the lines. */
export function createLogger(options: LogOptions): Logger {
  return scopedLogger(options, "default");
}

/** A logger that says nothing. */
export const SILENT: Logger = createLogger({ write: () => undefined, levels: { default: "none" } });

/** Reads `default:info,ads:debug`; a bare level is that of `default`. */
export function parseLogLevels(text: string): { levels: Record<string, LogLevel>; problems: string[] } {
  const levels: Record<string, LogLevel> = {};
  const problems: string[] = [];
  for (const part of text.split(",").filter((p) => p !== "")) {
    const colon = part.indexOf(":");
    const scope = colon < 0 ? "default" : part.slice(0, colon);
    const level = part.slice(colon + 1);
    const known = LOG_LEVELS.find((name) => name === level);
    if (known === undefined) problems.push(`unknown log level "${level}": choose one of ${LOG_LEVELS.join(", ")}`);
    else levels[scope] = known;
  }
  return { levels, problems };
}

function scopedLogger(options: LogOptions, scope: string): Logger {
  const limit = LOG_LEVELS.indexOf(options.levels?.[scope] ?? options.levels?.all ?? options.levels?.default ?? "info");
  const line = options.json ? jsonLine : textLine;
  const at = (level: LogLevel) => {
    if (LOG_LEVELS.indexOf(level) > limit) return () => undefined;
    return (message: string, fields?: LogFields) => {
      const time = (options.now?.() ?? new Date()).toISOString().replace(/(\d{3})Z$/, "$1000Z");
      options.write(line({ time, level, scope, message, fields: fields ?? {} }));
    };
  };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    scope: (name) => scopedLogger(options, name),
  };
}

interface Entry {
  readonly time: string;
  readonly level: LogLevel;
  readonly scope: string;
  readonly message: string;
  readonly fields: LogFields;
}

function textLine({ time, level, scope, message, fields }: Entry): string {
  const pairs = Object.entries(fields).filter(([, value]) => value !== undefined);
  const tail = pairs.length === 0 ? "" : `\t${pairs.map(([key, value]) => `${key}=${value}`).join(" ")}`;
  const name = scope === "default" ? "" : `${scope}\t`;
  return `${time}\t${level}\t${name}${message}${tail}\n`;
}

function jsonLine({ time, level, scope, message, fields }: Entry): string {
  const name = scope === "default" ? {} : { scope };
  return `${JSON.stringify({ level, time, ...name, msg: message, ...fields })}\n`;
}
