/** What is known of the Google Cloud project that the workload runs in; empty elsewhere. */
export interface GooglePlatform {
  readonly project: string;
  readonly projectNumber: string;
  /** Issuer of the tokens of a GKE cluster. */
  readonly clusterUrl: string;
}

/** Reads what the platform's metadata server said at start from the node's metadata. */
export function googlePlatform(metadata: Readonly<Record<string, unknown>>): GooglePlatform {
  const { PLATFORM_METADATA: platform } = metadata;
  const known = typeof platform === "object" && platform !== null ? new Map(Object.entries(platform)) : new Map();
  const text = (key: string) => String(known.get(key) ?? "");
  return {
    project: text("gcp_project"),
    projectNumber: text("gcp_project_number"),
    clusterUrl: text("gcp_gke_cluster_url"),
  };
}
