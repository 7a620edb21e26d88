/** A mesh from YAML text, and proxies in it, for tests. */
import assert from "node:assert/strict";
import { parseObject } from "#config/kinds/parse-object.ts";
import { meshConfigOf } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { RemoteCluster } from "#convert/clusters/remote-clusters.ts";
import { buildSnapshot } from "#convert/snapshot.ts";
import { readDocuments } from "#lib/yaml/read.ts";
import { DEFAULT_FEATURES, type Features } from "#model/features.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";

export interface MeshOptions {
  /** The mesh config as data, such as `{ accessLogFile: "/dev/stdout" }`. */
  readonly mesh?: object;
  readonly features?: Partial<Features>;
  /** The objects come from an API server, beside which controllers work. */
  readonly byApiServer?: boolean;
  /** What further clusters have. */
  readonly remotes?: readonly RemoteCluster[];
  /** The mesh before a change: what did not change keeps its identity. */
  readonly previous?: Snapshot;
}

/** The objects of a YAML text; fails the test when one of them has an error. */
export function objectsOf(yaml: string): ConfigObject[] {
  return readDocuments(yaml).flatMap((document) => {
    assert.equal(document.error, undefined, `line ${document.error?.line} ${document.error?.message}`);
    const { object, problems, key } = parseObject(document.value, { file: "test.yaml", line: document.line });
    const errors = problems.filter((problem) => problem.severity === "error");
    assert.deepEqual(errors, [], `${key || "document"} at line ${document.line} has errors`);
    return object ?? [];
  });
}

/** The snapshot of a mesh whose objects are given as YAML. */
export function meshOf(yaml: string, options: MeshOptions = {}): Snapshot {
  const mesh = meshConfigOf(options.mesh);
  assert.ok(mesh.value, JSON.stringify(mesh.problems));
  return buildSnapshot({
    objects: objectsOf(yaml),
    mesh: mesh.value,
    features: { ...DEFAULT_FEATURES, ...options.features },
    byApiServer: options.byApiServer,
    ...(options.remotes && { remotes: options.remotes }),
    previous: options.previous,
  });
}

export interface ProxyOptions {
  readonly type?: MeshProxy["type"];
  readonly ip?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly serviceAccount?: string;
  /** `region/zone/subzone` */
  readonly locality?: string;
  /** Node metadata beyond what the other options say. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly envoyVersion?: string;
  readonly extensions?: Iterable<string>;
}

/** A connected proxy as its node would describe it. */
export function proxyOf(options: ProxyOptions = {}): MeshProxy {
  const { type = "sidecar", ip = "10.0.0.1", name = "app-1", namespace = "default", labels = {} } = options;
  const { serviceAccount = "default", envoyVersion = "1.40.0", extensions = [] } = options;
  const dnsDomain = `${namespace}.svc.cluster.local`;
  return {
    nodeId: `${type}~${ip}~${name}.${namespace}~${dnsDomain}`,
    type,
    addresses: [ip],
    id: `${name}.${namespace}`,
    namespace,
    dnsDomain,
    labels,
    serviceAccount,
    ...(options.locality !== undefined && { locality: options.locality }),
    metadata: {
      CLUSTER_ID: DEFAULT_FEATURES.clusterId,
      INSTANCE_IPS: ip,
      ISTIO_VERSION: "1.29.6",
      LABELS: labels,
      NAMESPACE: namespace,
      SERVICE_ACCOUNT: serviceAccount,
      ...options.metadata,
    },
    envoyVersion,
    extensions: new Set(extensions),
  };
}
