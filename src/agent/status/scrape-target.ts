import { parseJson } from "#lib/json/parse-json.ts";
import { MeshError } from "#lib/mesh-error.ts";

/** Where the application has its metrics. */
export interface ScrapeTarget {
  readonly port: number;
  readonly path: string;
  readonly https: boolean;
}

export interface ParsedScrapeTarget {
  /** Undefined when the application is not to be scraped, or cannot be. */
  readonly target?: ScrapeTarget;
  /** Why it cannot be. */
  readonly problem?: string;
}

/** Reads ISTIO_PROMETHEUS_ANNOTATIONS. Throws when it cannot be read, or asks the agent to scrape itself. */
export function parseScrapeTarget(json: string, statusPort: number): ParsedScrapeTarget {
  const given = fieldsOf(json);
  if (given.scrape === "false") return {};
  const { port: portText = "80", path = "/metrics", scheme = "http" } = given;
  const port = Number(portText);
  if (!/^\d+$/.test(portText) || port < 1 || port > 65_535)
    return { problem: `prometheus.io/port must be a port from 1 to 65535, not "${portText}"` };
  if (scheme !== "http" && scheme !== "https")
    return { problem: `prometheus.io/scheme must be http or https, not "${scheme}"` };
  if (port === statusPort) {
    throw invalid(
      "invalid prometheus scrape configuration: application port is the same as agent port, which may lead to a " +
        `recursive loop. Ensure pod does not have prometheus.io/port=${statusPort} label, or that injection is not ` +
        "happening multiple times",
    );
  }
  return { target: { port, path: path.startsWith("/") ? path : `/${path}`, https: scheme === "https" } };
}

const FIELDS = ["scrape", "path", "port", "scheme"] as const;
type Fields = { readonly [name in (typeof FIELDS)[number]]?: string };

/** The fields that are set. All of them are text, as annotations are; others may come from a newer injector. */
function fieldsOf(json: string): Fields {
  let given: unknown;
  try {
    given = parseJson(json);
  } catch (cause) {
    throw invalid(`failed to unmarshal ISTIO_PROMETHEUS_ANNOTATIONS: ${json}`, cause);
  }
  if (typeof given !== "object" || Array.isArray(given))
    throw invalid(`failed to unmarshal ISTIO_PROMETHEUS_ANNOTATIONS: it must be an object, not ${json}`);
  const known: ReadonlySet<string> = new Set(FIELDS);
  const set = Object.entries(given ?? {}).filter(
    ([name, value]) => known.has(name.toLowerCase()) && value !== null && value !== "",
  );
  for (const [name, value] of set) {
    if (typeof value !== "string")
      throw invalid(
        `failed to unmarshal ISTIO_PROMETHEUS_ANNOTATIONS: ${name} must be text, not ${JSON.stringify(value)}`,
      );
  }
  return Object.fromEntries(set.map(([name, value]) => [name.toLowerCase(), value]));
}

function invalid(message: string, cause?: unknown): MeshError {
  return new MeshError("PROMETHEUS_ANNOTATIONS_INVALID", message, cause === undefined ? {} : { cause });
}
