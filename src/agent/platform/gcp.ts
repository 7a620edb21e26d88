import type { Labels } from "../node.ts";
import { askMetadata, askOrNothing } from "./metadata-client.ts";
import { gcpMetadataHost, given, type PlatformConfig, type PlatformFacts } from "./platform.ts";

/** Long enough for a server on the machine itself. */
const PROBE_MS = 100;
const TIMEOUT_MS = 5_000;
const COMPUTE_SCOPE = "https://www.googleapis.com/auth/compute.readonly";

export interface GcpInput extends PlatformConfig {
  /** Content of resolv.conf, which names the zone of a pod. */
  readonly resolvConf: string;
}

/** True when a metadata server answers that is Google's. */
export async function answersAsGcp(host: string): Promise<boolean> {
  try {
    const { headers } = await askMetadata({ url: `${baseUrl(host)}/`, headers: FLAVOR, timeoutMs: PROBE_MS });
    return headers["metadata-flavor"] === "Google";
  } catch {
    return false; // nobody there
  }
}

/** Of a machine or a pod of Google Cloud. What the environment says is not asked for. */
export async function gcp(input: GcpInput): Promise<PlatformFacts> {
  const fixed = fixedMetadata(input);
  const metadata = Object.keys(fixed).length > 0 ? fixed : await askedMetadata(input.gcpHost);
  const zone = fixed.gcp_zone ?? zoneOfResolvConf(input.resolvConf) ?? (await zoneAsked(input.gcpHost));
  const region = zone === undefined ? undefined : regionOfZone(zone);
  const inPod = input.kubernetes || (metadata.gcp_gke_cluster_name ?? "") !== "";
  return {
    metadata,
    locality: region === undefined ? {} : given({ region, zone }),
    labels: inPod ? {} : await instanceLabels(input, metadata),
  };
}

/** `us-central1-f` is in `us-central1`; undefined for a text that is no zone. */
export function regionOfZone(zone: string): string | undefined {
  return /^([^-]+-[^-]+)-[^-]+$/.exec(zone)?.[1];
}

/** Pods of GKE have `ZONE.c.PROJECT.internal` among their search domains. */
export function zoneOfResolvConf(text: string): string | undefined {
  return /^search.* ([^-\n]+-[^-\n]+-[^-\n]+)\.c\.[^.\n]+\.internal/m.exec(text)?.[1];
}

const FLAVOR = { "Metadata-Flavor": "Google" };

function baseUrl(host: string): string {
  return `http://${gcpMetadataHost(host)}`;
}

/** What the environment says in place of a metadata server. */
export function fixedMetadata({ gcpMetadata, gcpQuotaProject, gcpZone }: PlatformConfig): Labels {
  if (gcpMetadata === "") return {};
  const parts = gcpMetadata.split("|");
  const [project, number, cluster, location] = parts.length === 4 ? parts : [];
  const named: Labels =
    project === undefined
      ? {}
      : {
          gcp_project: project,
          gcp_project_number: number ?? "",
          gcp_gke_cluster_name: cluster ?? "",
          gcp_location: location ?? "",
        };
  return {
    ...withClusterUrl(named),
    ...given({ gcp_quota_project: gcpQuotaProject, gcp_zone: gcpZone }),
  };
}

async function askedMetadata(host: string): Promise<Labels> {
  const ask = asker(host);
  const attribute = (name: string) => ask(`instance/attributes/${name}`);
  const [project, number, location, cluster, instance, id, template, createdBy] = await Promise.all([
    ask("project/project-id"),
    ask("project/numeric-project-id"),
    attribute("cluster-location").then((found) => found ?? zoneAsked(host)),
    attribute("cluster-name"),
    ask("instance/name"),
    ask("instance/id"),
    attribute("instance-template"),
    attribute("created-by"),
  ]);
  return withClusterUrl(
    given({
      gcp_project: project,
      gcp_project_number: number,
      gcp_location: location,
      gcp_gke_cluster_name: cluster,
      gcp_gce_instance: instance,
      gcp_gce_instance_id: id,
      gcp_gce_instance_template: template,
      gcp_gce_instance_created_by: createdBy,
    }),
  );
}

function withClusterUrl(metadata: Labels): Labels {
  const { gcp_project: project, gcp_location: location, gcp_gke_cluster_name: cluster } = metadata;
  if (project === undefined || location === undefined || cluster === undefined) return metadata;
  const url = `https://container.googleapis.com/v1/projects/${project}/locations/${location}/clusters/${cluster}`;
  return { ...metadata, gcp_gke_cluster_url: url };
}

/** The server gives `projects/NUMBER/zones/ZONE`. */
async function zoneAsked(host: string): Promise<string | undefined> {
  return (await asker(host)("instance/zone"))?.split("/").at(-1);
}

function asker(host: string): (path: string) => Promise<string | undefined> {
  return async (path) => {
    const url = `${baseUrl(host)}/computeMetadata/v1/${path}`;
    return (await askOrNothing({ url, headers: FLAVOR, timeoutMs: TIMEOUT_MS }))?.trim();
  };
}

/** Labels of a virtual machine are known to the Compute API alone, which wants a token of the machine's account. */
async function instanceLabels({ gcpHost, gcpComputeUrl }: GcpInput, metadata: Labels): Promise<Labels> {
  const { gcp_project: project, gcp_location: zone, gcp_gce_instance: instance } = metadata;
  if (project === undefined || zone === undefined || instance === undefined) return {};
  const answer = await asker(gcpHost)(`instance/service-accounts/default/token?scopes=${COMPUTE_SCOPE}`);
  const token = stringsOf(answer ?? "").access_token;
  if (token === undefined) return {};
  const found = await askOrNothing({
    url: `${gcpComputeUrl}/compute/v1/projects/${project}/zones/${zone}/instances/${instance}`,
    headers: { authorization: `Bearer ${token}` },
    timeoutMs: TIMEOUT_MS,
  });
  return stringsOf(found ?? "", "labels");
}

/** The texts of a JSON object, or of an object in it. */
function stringsOf(json: string, key?: string): Labels {
  try {
    const whole: unknown = JSON.parse(json);
    const value = key === undefined ? whole : (whole as Record<string, unknown> | null)?.[key];
    const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
    return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
  } catch {
    return {}; // no JSON, no labels
  }
}
