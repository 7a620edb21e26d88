/** One scrape for application and proxy: the agent merges their metrics, so Prometheus is sent to the agent. */
import { parseGoBool } from "#lib/go/go-bool.ts";
import { goJson } from "./json/go-json.ts";
import { MERGE_METRICS } from "./pod/names.ts";
import { type Container, findContainer, mapContainers, type Pod, PROXY_CONTAINER, withAnnotations } from "./pod/pod.ts";

const SCRAPE = "prometheus_io_scrape";
const PORT = "prometheus_io_port";
const PATH = "prometheus_io_path";
/** Where the agent finds what the application itself was to be scraped for. */
export const APPLICATION_SCRAPING = "ISTIO_PROMETHEUS_ANNOTATIONS";

type Annotations = Readonly<Record<string, string>>;

/** What injection has to know of the mesh. */
export interface PrometheusInput {
  readonly statusPort: number;
  readonly mergesMetrics: boolean;
}

/** True for `prometheus.io/scrape`, `port` and `path` in all spellings that Prometheus takes for the same. */
export function isPrometheusAnnotation(name: string): boolean {
  return [SCRAPE, PORT, PATH].includes(labelName(name));
}

/** The port that annotations name. */
export function prometheusPort(annotations: Annotations): string | undefined {
  return annotated(annotations, PORT);
}

/** Whether metrics are merged: an annotation counts more than the mesh. */
export function mergesMetrics(annotations: Annotations, mesh: boolean | undefined): boolean {
  const own = annotations[MERGE_METRICS];
  return (own === undefined ? undefined : parseGoBool(own)) ?? mesh ?? true;
}

/** Whether the agent is to be scraped. It is not where nothing is, nor for an application whose annotations point there already. */
export function isScrapedByAgent(annotations: Annotations, input: PrometheusInput): boolean {
  const wantsScrape = scrapesOf(annotations).find((value) => value !== undefined) ?? true;
  const merges = mergesMetrics(annotations, input.mergesMetrics);
  return wantsScrape && merges && prometheusPort(annotations) !== String(input.statusPort);
}

/** The pod with annotations that point at the agent, where it is to be scraped. */
export function withMergedMetrics(pod: Pod, input: PrometheusInput): Pod {
  const { annotations = {} } = pod.metadata;
  if (!isScrapedByAgent(annotations, input)) return pod;
  const others = Object.entries(annotations).filter(([name]) => !isPrometheusAnnotation(name));
  const merged = withAnnotations(pod, {
    ...Object.fromEntries(others),
    "prometheus.io/port": String(input.statusPort),
    "prometheus.io/path": "/stats/prometheus",
    "prometheus.io/scrape": "true",
  });
  const application = applicationScraping(annotations);
  if (application === undefined) return merged;
  const proxy = findContainer(merged, PROXY_CONTAINER);
  return mapContainers(merged, (container) =>
    container === proxy ? withVariable(container, APPLICATION_SCRAPING, application) : container,
  );
}

function scrapesOf(annotations: Annotations): readonly (boolean | undefined)[] {
  const values = Object.entries(annotations).filter(([name]) => labelName(name) === SCRAPE);
  return values.map(([, value]) => parseGoBool(value));
}

/** What annotations say of the application, for the agent; undefined when they say nothing. */
export function applicationScraping(annotations: Annotations): string | undefined {
  const [scrape = "", path = "", port = ""] = [SCRAPE, PATH, PORT].map((name) => annotated(annotations, name));
  return scrape === "" && path === "" && port === "" ? undefined : goJson({ scrape, path, port });
}

function withVariable(container: Container, name: string, value: string): Container {
  return { ...container, env: [...(container.env ?? []), { name, value }] };
}

function annotated(annotations: Annotations, wanted: string): string | undefined {
  return Object.entries(annotations).find(([name]) => labelName(name) === wanted)?.[1];
}

/** How Prometheus makes the name of a label from that of an annotation. */
function labelName(annotation: string): string {
  return annotation.replace(/[^a-zA-Z0-9_]/g, "_");
}
