/** What `proxy-config log --level` asks of Envoy. */

const LEVELS = ["trace", "debug", "info", "warning", "error", "critical", "off"] as const;

/** The levels by their names, for help. */
export const LOG_LEVELS: readonly string[] = LEVELS;
/** The name that stands for all loggers. */
const ALL_LOGGERS = "level";

/** Queries to send one after the other, all loggers first; or what is wrong. */
export type LevelQueries = { readonly queries: readonly string[] } | { readonly wrong: string };

/**
 * Reads `debug` or `http:debug,redis=info`; `page` is what Envoy says of its loggers. A level without a logger is for all of
 * them, and takes back what was said before it.
 */
export function levelQueries(text: string, page: string): LevelQueries {
  const wanted = new Map<string, string>();
  for (const part of text.split(",")) {
    const [logger = "", level] = (part.split("::").at(-1) ?? "").split(/[:=]/, 2);
    if (level === undefined) {
      wanted.clear();
      wanted.set(ALL_LOGGERS, logger);
    } else if (logger !== ALL_LOGGERS && !page.includes(logger)) {
      return { wrong: `unrecognized logger name: ${logger}` };
    } else wanted.set(logger, level);
  }
  const unknown = [...wanted.values()].find((level) => levelNamed(level) === undefined);
  if (unknown !== undefined) return { wrong: `unrecognized logging level: ${unknown}` };
  const all = wanted.get(ALL_LOGGERS);
  wanted.delete(ALL_LOGGERS);
  const entries = [...(all === undefined ? [] : [[ALL_LOGGERS, all] as const]), ...wanted];
  return { queries: entries.map(([logger, level]) => `${encodeURIComponent(logger)}=${levelNamed(level)}`) };
}

function levelNamed(name: string): string | undefined {
  return name === "warn" ? "warning" : LEVELS.find((level) => level === name);
}
