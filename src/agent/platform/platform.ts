/** What the cloud knows of the machine that a workload runs on. */
import type { Labels, Locality } from "../node.ts";

export interface PlatformFacts {
  /** Of node metadata, as PLATFORM_METADATA. */
  readonly metadata: Labels;
  /** Where the machine is; a label of the workload comes before it. */
  readonly locality: Locality;
  /** Of the machine, for workloads that are no pods. */
  readonly labels: Labels;
}

/** Google Cloud's metadata server: the given one, else that of each of its machines. */
export function gcpMetadataHost(given: string): string {
  return given || "169.254.169.254";
}

export const NO_PLATFORM: PlatformFacts = { metadata: {}, locality: {}, labels: {} };

/** What the environment says of the platform; see `agent-environment.ts`. */
export interface PlatformConfig {
  /** CLOUD_PLATFORM; empty to find out. */
  readonly cloud: "" | "gcp" | "aws" | "azure" | "none";
  /** GCP_METADATA, GCP_ZONE, GCP_QUOTA_PROJECT */
  readonly gcpMetadata: string;
  readonly gcpZone: string;
  readonly gcpQuotaProject: string;
  /** GCE_METADATA_HOST; empty when nobody says that this is Google Cloud. */
  readonly gcpHost: string;
  /** URL of Google's Compute API. */
  readonly gcpComputeUrl: string;
  /** AWS_EC2_METADATA_SERVICE_ENDPOINT */
  readonly awsUrl: string;
  /** AZURE_METADATA_HOST */
  readonly azureUrl: string;
  /** KUBERNETES_SERVICE_HOST is set. */
  readonly kubernetes: boolean;
}

/** Keys with a value. */
export function given(entries: Readonly<Record<string, string | undefined>>): Labels {
  return Object.fromEntries(
    Object.entries(entries).filter((entry): entry is [string, string] => (entry[1] ?? "") !== ""),
  );
}
