/** A connected proxy, read from the node of its first request. */
export interface Proxy {
  /** As sent: `sidecar~10.0.0.1~httpbin-1.default~default.svc.cluster.local`. */
  readonly nodeId: string;
  readonly type: "sidecar" | "router";
  /** Node metadata INSTANCE_IPS, else the address of the id. */
  readonly addresses: readonly string[];
  /** `name.namespace`, the third part of the id. */
  readonly id: string;
  readonly namespace: string;
  readonly dnsDomain: string;
  readonly labels: Readonly<Record<string, string>>;
  /** `region/zone/subzone` by its labels, else as its node says; a registry that knows its workload goes before it. */
  readonly locality?: string;
  /** `region/zone/subzone` as its node says, whatever its labels are. */
  readonly nodeLocality?: string;
  readonly serviceAccount: string;
  /** It proved no identity, and its namespace is a claim that is not believed: it gets only what is public. */
  readonly isUnproven?: true;
  /** Who it proved to be; unset where it proved nothing, as in plain text. */
  readonly verified?: { readonly namespace: string; readonly serviceAccount: string } | undefined;
  /** Everything the node sent, as JSON. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** `1.40.0`; empty when not sent. */
  readonly envoyVersion: string;
  /** Names of the extensions this Envoy has; empty when it did not say. */
  readonly extensions: ReadonlySet<string>;
}
