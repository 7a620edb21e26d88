/**
 * Configuration written in TypeScript, checked by the compiler.
 *
 *     import { defineConfig, toYaml } from "mizzen/config";
 *
 *     const config = defineConfig({
 *       apiVersion: "networking.istio.io/v1",
 *       kind: "VirtualService",
 *       metadata: { name: "reviews", namespace: "default" },
 *       spec: { hosts: ["reviews"], http: [{ timeout: "5s", route: [{ destination: { host: "reviews" } }] }] },
 *     });
 *     process.stdout.write(toYaml(config));
 *
 * Made by `node scripts/json-schemas.ts` from the schemas that configuration is read by: change them there. This file is what
 * a program sees of the package: declarations alone, without an import. Kinds are as they are written: durations are texts such
 * as "10s", enums are names.
 */

/** The objects, as they are: what it is for is their type. */
export declare function defineConfig(...objects: readonly MeshObject[]): readonly MeshObject[];

/** What is wrong with the objects beyond their types, as the control plane would say it. */
export declare function checkConfig(objects: readonly MeshObject[]): readonly ConfigProblem[];

/** The objects as the text of a YAML file, each a document of its own. */
export declare function toYaml(objects: readonly MeshObject[]): string;

/** Something wrong with one object. */
export interface ConfigProblem {
  /** `kind/namespace/name` */
  readonly object: string;
  /** `spec.http[0].timeout`; empty for the object as a whole. */
  readonly field: string;
  readonly message: string;
  /** An error keeps the object out of the mesh; a warning does not. */
  readonly severity: "error" | "warning";
}

/** Labels, annotations and where an object belongs. */
export interface ObjectMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A duration as Go writes them: `10s`, `1h30m`, `250ms`. */
export type Duration = `${number}${"ns" | "us" | "ms" | "s" | "m" | "h"}${string}` | "0";

/** v1 ConfigMap. */
export interface ConfigMap {
  readonly apiVersion: "v1";
  readonly kind: "ConfigMap";
  readonly metadata: ObjectMetadata;
  readonly data?: Readonly<Record<string, string>>;
  readonly binaryData?: Readonly<Record<string, string>>;
  readonly immutable?: boolean;
}

/** v1 Namespace. */
export interface Namespace {
  readonly apiVersion: "v1";
  readonly kind: "Namespace";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly [other: string]: unknown;
  };
}

/** v1 Node. */
export interface Node {
  readonly apiVersion: "v1";
  readonly kind: "Node";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly providerID?: string;
    readonly [other: string]: unknown;
  };
}

/** v1 Pod. */
export interface Pod {
  readonly apiVersion: "v1";
  readonly kind: "Pod";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly nodeName?: string;
    readonly serviceAccountName?: string;
    readonly hostname?: string;
    readonly subdomain?: string;
    readonly containers?: readonly {
      readonly name?: string;
      readonly restartPolicy?: string;
      readonly ports?: readonly {
        readonly name?: string;
        readonly containerPort?: number;
        readonly protocol?: string;
        readonly [other: string]: unknown;
      }[];
      readonly [other: string]: unknown;
    }[];
    readonly initContainers?: readonly {
      readonly name?: string;
      readonly restartPolicy?: string;
      readonly ports?: readonly {
        readonly name?: string;
        readonly containerPort?: number;
        readonly protocol?: string;
        readonly [other: string]: unknown;
      }[];
      readonly [other: string]: unknown;
    }[];
    readonly [other: string]: unknown;
  };
}

/** v1 Secret. */
export interface Secret {
  readonly apiVersion: "v1";
  readonly kind: "Secret";
  readonly metadata: ObjectMetadata;
  readonly type?: string;
  readonly data?: Readonly<Record<string, string>>;
  readonly stringData?: Readonly<Record<string, string>>;
  readonly immutable?: boolean;
}

/** v1 Service. */
export interface Service {
  readonly apiVersion: "v1";
  readonly kind: "Service";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly ports?: readonly {
      readonly name?: string;
      readonly protocol?: "TCP" | "UDP" | "SCTP";
      readonly appProtocol?: string;
      readonly port: number;
      readonly targetPort?: number | string;
      readonly nodePort?: number;
    }[];
    readonly selector?: Readonly<Record<string, string>>;
    readonly clusterIP?: string;
    readonly clusterIPs?: readonly string[];
    readonly type?: "ClusterIP" | "NodePort" | "LoadBalancer" | "ExternalName";
    readonly externalIPs?: readonly string[];
    readonly sessionAffinity?: string;
    readonly sessionAffinityConfig?: Readonly<Record<string, unknown>>;
    readonly loadBalancerIP?: string;
    readonly loadBalancerSourceRanges?: readonly string[];
    readonly loadBalancerClass?: string;
    readonly externalName?: string;
    readonly externalTrafficPolicy?: string;
    readonly internalTrafficPolicy?: string;
    readonly trafficDistribution?: string;
    readonly healthCheckNodePort?: number;
    readonly publishNotReadyAddresses?: boolean;
    readonly ipFamilies?: readonly string[];
    readonly ipFamilyPolicy?: string;
    readonly allocateLoadBalancerNodePorts?: boolean;
  };
}

/** discovery.k8s.io/v1 EndpointSlice. */
export interface EndpointSlice {
  readonly apiVersion: "discovery.k8s.io/v1";
  readonly kind: "EndpointSlice";
  readonly metadata: ObjectMetadata;
  readonly addressType?: string;
  readonly endpoints?: readonly {
    readonly addresses?: readonly string[];
    readonly conditions?: {
      readonly ready?: boolean;
      readonly serving?: boolean;
      readonly terminating?: boolean;
    };
    readonly hostname?: string;
    readonly nodeName?: string;
    readonly zone?: string;
    readonly targetRef?: {
      readonly apiVersion?: string;
      readonly kind?: string;
      readonly name?: string;
      readonly namespace?: string;
      readonly uid?: string;
      readonly resourceVersion?: string;
      readonly fieldPath?: string;
    };
    readonly deprecatedTopology?: Readonly<Record<string, string>>;
    readonly hints?: unknown;
  }[];
  readonly ports?: readonly {
    readonly name?: string;
    readonly protocol?: string;
    readonly port?: number;
    readonly appProtocol?: string;
  }[];
}

/** networking.istio.io/v1 DestinationRule. */
export interface DestinationRule {
  readonly apiVersion: "networking.istio.io/v1" | "networking.istio.io/v1beta1" | "networking.istio.io/v1alpha3";
  readonly kind: "DestinationRule";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly host: string;
    readonly trafficPolicy?: {
      readonly loadBalancer?: {
        readonly simple?: "UNSPECIFIED" | "LEAST_CONN" | "RANDOM" | "PASSTHROUGH" | "ROUND_ROBIN" | "LEAST_REQUEST";
        readonly consistentHash?: {
          readonly httpHeaderName?: string;
          readonly httpCookie?: {
            readonly name: string;
            readonly path?: string;
            readonly ttl?: Duration;
            readonly attributes?: readonly {
              readonly name: string;
              readonly value?: string;
            }[];
          };
          readonly useSourceIp?: boolean;
          readonly httpQueryParameterName?: string;
          readonly ringHash?: {
            readonly minimumRingSize?: number;
          };
          readonly maglev?: {
            readonly tableSize?: number;
          };
          readonly minimumRingSize?: number;
        };
        readonly localityLbSetting?: {
          readonly distribute?: readonly {
            readonly from?: string;
            readonly to?: Readonly<Record<string, number>>;
          }[];
          readonly failover?: readonly {
            readonly from?: string;
            readonly to?: string;
          }[];
          readonly failoverPriority?: readonly string[];
          readonly enabled?: boolean;
        };
        readonly warmupDurationSecs?: Duration;
        readonly warmup?: {
          readonly duration: Duration;
          readonly minimumPercent?: number;
          readonly aggression?: number;
        };
      };
      readonly connectionPool?: {
        readonly tcp?: {
          readonly maxConnections?: number;
          readonly connectTimeout?: Duration;
          readonly tcpKeepalive?: {
            readonly probes?: number;
            readonly time?: Duration;
            readonly interval?: Duration;
          };
          readonly maxConnectionDuration?: Duration;
          readonly idleTimeout?: Duration;
        };
        readonly http?: {
          readonly http1MaxPendingRequests?: number;
          readonly http2MaxRequests?: number;
          readonly maxRequestsPerConnection?: number;
          readonly maxRetries?: number;
          readonly idleTimeout?: Duration;
          readonly h2UpgradePolicy?: "DEFAULT" | "DO_NOT_UPGRADE" | "UPGRADE";
          readonly useClientProtocol?: boolean;
          readonly maxConcurrentStreams?: number;
        };
      };
      readonly outlierDetection?: {
        readonly consecutiveErrors?: number;
        readonly splitExternalLocalOriginErrors?: boolean;
        readonly consecutiveLocalOriginFailures?: number;
        readonly consecutiveGatewayErrors?: number;
        readonly consecutive5xxErrors?: number;
        readonly interval?: Duration;
        readonly baseEjectionTime?: Duration;
        readonly maxEjectionPercent?: number;
        readonly minHealthPercent?: number;
      };
      readonly tls?: {
        readonly mode?: "DISABLE" | "SIMPLE" | "MUTUAL" | "ISTIO_MUTUAL";
        readonly clientCertificate?: string;
        readonly privateKey?: string;
        readonly caCertificates?: string;
        readonly credentialName?: string;
        readonly subjectAltNames?: readonly string[];
        readonly sni?: string;
        readonly insecureSkipVerify?: boolean;
        readonly caCrl?: string;
      };
      readonly portLevelSettings?: readonly {
        readonly port?: {
          readonly number?: number;
        };
        readonly loadBalancer?: {
          readonly simple?: "UNSPECIFIED" | "LEAST_CONN" | "RANDOM" | "PASSTHROUGH" | "ROUND_ROBIN" | "LEAST_REQUEST";
          readonly consistentHash?: {
            readonly httpHeaderName?: string;
            readonly httpCookie?: {
              readonly name: string;
              readonly path?: string;
              readonly ttl?: Duration;
              readonly attributes?: readonly {
                readonly name: string;
                readonly value?: string;
              }[];
            };
            readonly useSourceIp?: boolean;
            readonly httpQueryParameterName?: string;
            readonly ringHash?: {
              readonly minimumRingSize?: number;
            };
            readonly maglev?: {
              readonly tableSize?: number;
            };
            readonly minimumRingSize?: number;
          };
          readonly localityLbSetting?: {
            readonly distribute?: readonly {
              readonly from?: string;
              readonly to?: Readonly<Record<string, number>>;
            }[];
            readonly failover?: readonly {
              readonly from?: string;
              readonly to?: string;
            }[];
            readonly failoverPriority?: readonly string[];
            readonly enabled?: boolean;
          };
          readonly warmupDurationSecs?: Duration;
          readonly warmup?: {
            readonly duration: Duration;
            readonly minimumPercent?: number;
            readonly aggression?: number;
          };
        };
        readonly connectionPool?: {
          readonly tcp?: {
            readonly maxConnections?: number;
            readonly connectTimeout?: Duration;
            readonly tcpKeepalive?: {
              readonly probes?: number;
              readonly time?: Duration;
              readonly interval?: Duration;
            };
            readonly maxConnectionDuration?: Duration;
            readonly idleTimeout?: Duration;
          };
          readonly http?: {
            readonly http1MaxPendingRequests?: number;
            readonly http2MaxRequests?: number;
            readonly maxRequestsPerConnection?: number;
            readonly maxRetries?: number;
            readonly idleTimeout?: Duration;
            readonly h2UpgradePolicy?: "DEFAULT" | "DO_NOT_UPGRADE" | "UPGRADE";
            readonly useClientProtocol?: boolean;
            readonly maxConcurrentStreams?: number;
          };
        };
        readonly outlierDetection?: {
          readonly consecutiveErrors?: number;
          readonly splitExternalLocalOriginErrors?: boolean;
          readonly consecutiveLocalOriginFailures?: number;
          readonly consecutiveGatewayErrors?: number;
          readonly consecutive5xxErrors?: number;
          readonly interval?: Duration;
          readonly baseEjectionTime?: Duration;
          readonly maxEjectionPercent?: number;
          readonly minHealthPercent?: number;
        };
        readonly tls?: {
          readonly mode?: "DISABLE" | "SIMPLE" | "MUTUAL" | "ISTIO_MUTUAL";
          readonly clientCertificate?: string;
          readonly privateKey?: string;
          readonly caCertificates?: string;
          readonly credentialName?: string;
          readonly subjectAltNames?: readonly string[];
          readonly sni?: string;
          readonly insecureSkipVerify?: boolean;
          readonly caCrl?: string;
        };
      }[];
      readonly tunnel?: {
        readonly protocol?: string;
        readonly targetHost: string;
        readonly targetPort: number;
      };
      readonly proxyProtocol?: {
        readonly version?: "V1" | "V2";
      };
      readonly retryBudget?: {
        readonly percent?: number;
        readonly minRetryConcurrency?: number;
      };
    };
    readonly subsets?: readonly {
      readonly name: string;
      readonly labels?: Readonly<Record<string, string>>;
      readonly trafficPolicy?: {
        readonly loadBalancer?: {
          readonly simple?: "UNSPECIFIED" | "LEAST_CONN" | "RANDOM" | "PASSTHROUGH" | "ROUND_ROBIN" | "LEAST_REQUEST";
          readonly consistentHash?: {
            readonly httpHeaderName?: string;
            readonly httpCookie?: {
              readonly name: string;
              readonly path?: string;
              readonly ttl?: Duration;
              readonly attributes?: readonly {
                readonly name: string;
                readonly value?: string;
              }[];
            };
            readonly useSourceIp?: boolean;
            readonly httpQueryParameterName?: string;
            readonly ringHash?: {
              readonly minimumRingSize?: number;
            };
            readonly maglev?: {
              readonly tableSize?: number;
            };
            readonly minimumRingSize?: number;
          };
          readonly localityLbSetting?: {
            readonly distribute?: readonly {
              readonly from?: string;
              readonly to?: Readonly<Record<string, number>>;
            }[];
            readonly failover?: readonly {
              readonly from?: string;
              readonly to?: string;
            }[];
            readonly failoverPriority?: readonly string[];
            readonly enabled?: boolean;
          };
          readonly warmupDurationSecs?: Duration;
          readonly warmup?: {
            readonly duration: Duration;
            readonly minimumPercent?: number;
            readonly aggression?: number;
          };
        };
        readonly connectionPool?: {
          readonly tcp?: {
            readonly maxConnections?: number;
            readonly connectTimeout?: Duration;
            readonly tcpKeepalive?: {
              readonly probes?: number;
              readonly time?: Duration;
              readonly interval?: Duration;
            };
            readonly maxConnectionDuration?: Duration;
            readonly idleTimeout?: Duration;
          };
          readonly http?: {
            readonly http1MaxPendingRequests?: number;
            readonly http2MaxRequests?: number;
            readonly maxRequestsPerConnection?: number;
            readonly maxRetries?: number;
            readonly idleTimeout?: Duration;
            readonly h2UpgradePolicy?: "DEFAULT" | "DO_NOT_UPGRADE" | "UPGRADE";
            readonly useClientProtocol?: boolean;
            readonly maxConcurrentStreams?: number;
          };
        };
        readonly outlierDetection?: {
          readonly consecutiveErrors?: number;
          readonly splitExternalLocalOriginErrors?: boolean;
          readonly consecutiveLocalOriginFailures?: number;
          readonly consecutiveGatewayErrors?: number;
          readonly consecutive5xxErrors?: number;
          readonly interval?: Duration;
          readonly baseEjectionTime?: Duration;
          readonly maxEjectionPercent?: number;
          readonly minHealthPercent?: number;
        };
        readonly tls?: {
          readonly mode?: "DISABLE" | "SIMPLE" | "MUTUAL" | "ISTIO_MUTUAL";
          readonly clientCertificate?: string;
          readonly privateKey?: string;
          readonly caCertificates?: string;
          readonly credentialName?: string;
          readonly subjectAltNames?: readonly string[];
          readonly sni?: string;
          readonly insecureSkipVerify?: boolean;
          readonly caCrl?: string;
        };
        readonly portLevelSettings?: readonly {
          readonly port?: {
            readonly number?: number;
          };
          readonly loadBalancer?: {
            readonly simple?: "UNSPECIFIED" | "LEAST_CONN" | "RANDOM" | "PASSTHROUGH" | "ROUND_ROBIN" | "LEAST_REQUEST";
            readonly consistentHash?: {
              readonly httpHeaderName?: string;
              readonly httpCookie?: {
                readonly name: string;
                readonly path?: string;
                readonly ttl?: Duration;
                readonly attributes?: readonly {
                  readonly name: string;
                  readonly value?: string;
                }[];
              };
              readonly useSourceIp?: boolean;
              readonly httpQueryParameterName?: string;
              readonly ringHash?: {
                readonly minimumRingSize?: number;
              };
              readonly maglev?: {
                readonly tableSize?: number;
              };
              readonly minimumRingSize?: number;
            };
            readonly localityLbSetting?: {
              readonly distribute?: readonly {
                readonly from?: string;
                readonly to?: Readonly<Record<string, number>>;
              }[];
              readonly failover?: readonly {
                readonly from?: string;
                readonly to?: string;
              }[];
              readonly failoverPriority?: readonly string[];
              readonly enabled?: boolean;
            };
            readonly warmupDurationSecs?: Duration;
            readonly warmup?: {
              readonly duration: Duration;
              readonly minimumPercent?: number;
              readonly aggression?: number;
            };
          };
          readonly connectionPool?: {
            readonly tcp?: {
              readonly maxConnections?: number;
              readonly connectTimeout?: Duration;
              readonly tcpKeepalive?: {
                readonly probes?: number;
                readonly time?: Duration;
                readonly interval?: Duration;
              };
              readonly maxConnectionDuration?: Duration;
              readonly idleTimeout?: Duration;
            };
            readonly http?: {
              readonly http1MaxPendingRequests?: number;
              readonly http2MaxRequests?: number;
              readonly maxRequestsPerConnection?: number;
              readonly maxRetries?: number;
              readonly idleTimeout?: Duration;
              readonly h2UpgradePolicy?: "DEFAULT" | "DO_NOT_UPGRADE" | "UPGRADE";
              readonly useClientProtocol?: boolean;
              readonly maxConcurrentStreams?: number;
            };
          };
          readonly outlierDetection?: {
            readonly consecutiveErrors?: number;
            readonly splitExternalLocalOriginErrors?: boolean;
            readonly consecutiveLocalOriginFailures?: number;
            readonly consecutiveGatewayErrors?: number;
            readonly consecutive5xxErrors?: number;
            readonly interval?: Duration;
            readonly baseEjectionTime?: Duration;
            readonly maxEjectionPercent?: number;
            readonly minHealthPercent?: number;
          };
          readonly tls?: {
            readonly mode?: "DISABLE" | "SIMPLE" | "MUTUAL" | "ISTIO_MUTUAL";
            readonly clientCertificate?: string;
            readonly privateKey?: string;
            readonly caCertificates?: string;
            readonly credentialName?: string;
            readonly subjectAltNames?: readonly string[];
            readonly sni?: string;
            readonly insecureSkipVerify?: boolean;
            readonly caCrl?: string;
          };
        }[];
        readonly tunnel?: {
          readonly protocol?: string;
          readonly targetHost: string;
          readonly targetPort: number;
        };
        readonly proxyProtocol?: {
          readonly version?: "V1" | "V2";
        };
        readonly retryBudget?: {
          readonly percent?: number;
          readonly minRetryConcurrency?: number;
        };
      };
    }[];
    readonly exportTo?: readonly string[];
    readonly workloadSelector?: {
      readonly matchLabels?: Readonly<Record<string, string>>;
    };
  };
}

/** networking.istio.io/v1 EnvoyFilter. */
export interface EnvoyFilter {
  readonly apiVersion: "networking.istio.io/v1" | "networking.istio.io/v1beta1" | "networking.istio.io/v1alpha3";
  readonly kind: "EnvoyFilter";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly workloadSelector?: {
      readonly labels?: Readonly<Record<string, string>>;
    };
    readonly targetRefs?: readonly {
      readonly group?: string;
      readonly kind: string;
      readonly name: string;
      readonly namespace?: string;
    }[];
    readonly configPatches?: readonly {
      readonly applyTo?: "INVALID" | "LISTENER" | "FILTER_CHAIN" | "NETWORK_FILTER" | "HTTP_FILTER" | "ROUTE_CONFIGURATION" | "VIRTUAL_HOST" | "HTTP_ROUTE" | "CLUSTER" | "EXTENSION_CONFIG" | "BOOTSTRAP" | "LISTENER_FILTER";
      readonly match?: {
        readonly context?: "ANY" | "SIDECAR_INBOUND" | "SIDECAR_OUTBOUND" | "GATEWAY" | "WAYPOINT";
        readonly proxy?: {
          readonly proxyVersion?: string;
          readonly metadata?: Readonly<Record<string, string>>;
        };
        readonly listener?: {
          readonly portNumber?: number;
          readonly portName?: string;
          readonly filterChain?: {
            readonly name?: string;
            readonly sni?: string;
            readonly transportProtocol?: string;
            readonly applicationProtocols?: string;
            readonly filter?: {
              readonly name?: string;
              readonly subFilter?: {
                readonly name?: string;
              };
            };
            readonly destinationPort?: number;
          };
          readonly listenerFilter?: string;
          readonly name?: string;
        };
        readonly routeConfiguration?: {
          readonly portNumber?: number;
          readonly portName?: string;
          readonly gateway?: string;
          readonly vhost?: {
            readonly name?: string;
            readonly domainName?: string;
            readonly route?: {
              readonly name?: string;
              readonly action?: "ANY" | "ROUTE" | "REDIRECT" | "DIRECT_RESPONSE";
            };
          };
          readonly name?: string;
        };
        readonly cluster?: {
          readonly portNumber?: number;
          readonly service?: string;
          readonly subset?: string;
          readonly name?: string;
        };
        readonly waypoint?: {
          readonly portNumber?: number;
          readonly route?: {
            readonly name?: string;
          };
          readonly filter?: {
            readonly name?: string;
            readonly subFilter?: {
              readonly name?: string;
            };
          };
        };
      };
      readonly patch?: {
        readonly operation?: "INVALID" | "MERGE" | "ADD" | "REMOVE" | "INSERT_BEFORE" | "INSERT_AFTER" | "INSERT_FIRST" | "REPLACE";
        readonly value?: Readonly<Record<string, unknown>>;
        readonly filterClass?: "UNSPECIFIED" | "AUTHN" | "AUTHZ" | "STATS";
      };
    }[];
    readonly priority?: number;
  };
}

/** networking.istio.io/v1 Gateway. */
export interface Gateway {
  readonly apiVersion: "networking.istio.io/v1" | "networking.istio.io/v1beta1" | "networking.istio.io/v1alpha3";
  readonly kind: "Gateway";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly servers?: readonly {
      readonly port: {
        readonly number: number;
        readonly protocol: string;
        readonly name: string;
        readonly targetPort?: number;
      };
      readonly bind?: string;
      readonly hosts: readonly string[];
      readonly tls?: {
        readonly httpsRedirect?: boolean;
        readonly mode?: "PASSTHROUGH" | "SIMPLE" | "MUTUAL" | "AUTO_PASSTHROUGH" | "ISTIO_MUTUAL" | "OPTIONAL_MUTUAL";
        readonly serverCertificate?: string;
        readonly privateKey?: string;
        readonly caCertificates?: string;
        readonly caCrl?: string;
        readonly credentialName?: string;
        readonly credentialNames?: readonly string[];
        readonly caCertCredentialName?: string;
        readonly tlsCertificates?: readonly {
          readonly serverCertificate?: string;
          readonly privateKey?: string;
          readonly caCertificates?: string;
        }[];
        readonly subjectAltNames?: readonly string[];
        readonly verifyCertificateSpki?: readonly string[];
        readonly verifyCertificateHash?: readonly string[];
        readonly minProtocolVersion?: "TLS_AUTO" | "TLSV1_0" | "TLSV1_1" | "TLSV1_2" | "TLSV1_3";
        readonly maxProtocolVersion?: "TLS_AUTO" | "TLSV1_0" | "TLSV1_1" | "TLSV1_2" | "TLSV1_3";
        readonly cipherSuites?: readonly string[];
      };
      readonly defaultEndpoint?: string;
      readonly name?: string;
    }[];
    readonly selector?: Readonly<Record<string, string>>;
  };
}

/** networking.istio.io/v1 ServiceEntry. */
export interface ServiceEntry {
  readonly apiVersion: "networking.istio.io/v1" | "networking.istio.io/v1beta1" | "networking.istio.io/v1alpha3";
  readonly kind: "ServiceEntry";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly hosts: readonly string[];
    readonly addresses?: readonly string[];
    readonly ports?: readonly {
      readonly number: number;
      readonly protocol?: string;
      readonly name: string;
      readonly targetPort?: number;
    }[];
    readonly location?: "MESH_EXTERNAL" | "MESH_INTERNAL";
    readonly resolution?: "NONE" | "STATIC" | "DNS" | "DNS_ROUND_ROBIN" | "DYNAMIC_DNS";
    readonly endpoints?: readonly {
      readonly address?: string;
      readonly ports?: Readonly<Record<string, number>>;
      readonly labels?: Readonly<Record<string, string>>;
      readonly network?: string;
      readonly locality?: string;
      readonly weight?: number;
      readonly serviceAccount?: string;
    }[];
    readonly workloadSelector?: {
      readonly labels?: Readonly<Record<string, string>>;
    };
    readonly exportTo?: readonly string[];
    readonly subjectAltNames?: readonly string[];
  };
}

/** networking.istio.io/v1 Sidecar. */
export interface Sidecar {
  readonly apiVersion: "networking.istio.io/v1" | "networking.istio.io/v1beta1" | "networking.istio.io/v1alpha3";
  readonly kind: "Sidecar";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly workloadSelector?: {
      readonly labels?: Readonly<Record<string, string>>;
    };
    readonly ingress?: readonly {
      readonly port: {
        readonly number?: number;
        readonly protocol?: string;
        readonly name?: string;
        readonly targetPort?: number;
      };
      readonly bind?: string;
      readonly captureMode?: "DEFAULT" | "IPTABLES" | "NONE";
      readonly defaultEndpoint?: string;
      readonly tls?: {
        readonly httpsRedirect?: boolean;
        readonly mode?: "PASSTHROUGH" | "SIMPLE" | "MUTUAL" | "AUTO_PASSTHROUGH" | "ISTIO_MUTUAL" | "OPTIONAL_MUTUAL";
        readonly serverCertificate?: string;
        readonly privateKey?: string;
        readonly caCertificates?: string;
        readonly caCrl?: string;
        readonly credentialName?: string;
        readonly credentialNames?: readonly string[];
        readonly caCertCredentialName?: string;
        readonly tlsCertificates?: readonly {
          readonly serverCertificate?: string;
          readonly privateKey?: string;
          readonly caCertificates?: string;
        }[];
        readonly subjectAltNames?: readonly string[];
        readonly verifyCertificateSpki?: readonly string[];
        readonly verifyCertificateHash?: readonly string[];
        readonly minProtocolVersion?: "TLS_AUTO" | "TLSV1_0" | "TLSV1_1" | "TLSV1_2" | "TLSV1_3";
        readonly maxProtocolVersion?: "TLS_AUTO" | "TLSV1_0" | "TLSV1_1" | "TLSV1_2" | "TLSV1_3";
        readonly cipherSuites?: readonly string[];
      };
      readonly connectionPool?: {
        readonly tcp?: {
          readonly maxConnections?: number;
          readonly connectTimeout?: Duration;
          readonly tcpKeepalive?: {
            readonly probes?: number;
            readonly time?: Duration;
            readonly interval?: Duration;
          };
          readonly maxConnectionDuration?: Duration;
          readonly idleTimeout?: Duration;
        };
        readonly http?: {
          readonly http1MaxPendingRequests?: number;
          readonly http2MaxRequests?: number;
          readonly maxRequestsPerConnection?: number;
          readonly maxRetries?: number;
          readonly idleTimeout?: Duration;
          readonly h2UpgradePolicy?: "DEFAULT" | "DO_NOT_UPGRADE" | "UPGRADE";
          readonly useClientProtocol?: boolean;
          readonly maxConcurrentStreams?: number;
        };
      };
    }[];
    readonly egress?: readonly {
      readonly port?: {
        readonly number?: number;
        readonly protocol?: string;
        readonly name?: string;
        readonly targetPort?: number;
      };
      readonly bind?: string;
      readonly captureMode?: "DEFAULT" | "IPTABLES" | "NONE";
      readonly hosts: readonly string[];
    }[];
    readonly inboundConnectionPool?: {
      readonly tcp?: {
        readonly maxConnections?: number;
        readonly connectTimeout?: Duration;
        readonly tcpKeepalive?: {
          readonly probes?: number;
          readonly time?: Duration;
          readonly interval?: Duration;
        };
        readonly maxConnectionDuration?: Duration;
        readonly idleTimeout?: Duration;
      };
      readonly http?: {
        readonly http1MaxPendingRequests?: number;
        readonly http2MaxRequests?: number;
        readonly maxRequestsPerConnection?: number;
        readonly maxRetries?: number;
        readonly idleTimeout?: Duration;
        readonly h2UpgradePolicy?: "DEFAULT" | "DO_NOT_UPGRADE" | "UPGRADE";
        readonly useClientProtocol?: boolean;
        readonly maxConcurrentStreams?: number;
      };
    };
    readonly outboundTrafficPolicy?: {
      readonly mode?: "REGISTRY_ONLY" | "ALLOW_ANY";
      readonly egressProxy?: {
        readonly host: string;
        readonly subset?: string;
        readonly port?: {
          readonly number?: number;
        };
      };
    };
  };
}

/** networking.istio.io/v1 ProxyConfig. */
export interface ProxyConfig {
  readonly apiVersion: "networking.istio.io/v1" | "networking.istio.io/v1beta1" | "networking.istio.io/v1alpha3";
  readonly kind: "ProxyConfig";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly selector?: {
      readonly matchLabels?: Readonly<Record<string, string>>;
    };
    readonly concurrency?: number;
    readonly environmentVariables?: Readonly<Record<string, string>>;
    readonly image?: {
      readonly imageType?: string;
    };
  };
}

/** networking.istio.io/v1 VirtualService. */
export interface VirtualService {
  readonly apiVersion: "networking.istio.io/v1" | "networking.istio.io/v1beta1" | "networking.istio.io/v1alpha3";
  readonly kind: "VirtualService";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly hosts?: readonly string[];
    readonly gateways?: readonly string[];
    readonly http?: readonly {
      readonly name?: string;
      readonly match?: readonly {
        readonly name?: string;
        readonly uri?: {
          readonly exact?: string;
          readonly prefix?: string;
          readonly regex?: string;
        };
        readonly scheme?: {
          readonly exact?: string;
          readonly prefix?: string;
          readonly regex?: string;
        };
        readonly method?: {
          readonly exact?: string;
          readonly prefix?: string;
          readonly regex?: string;
        };
        readonly authority?: {
          readonly exact?: string;
          readonly prefix?: string;
          readonly regex?: string;
        };
        readonly headers?: Readonly<Record<string, {
          readonly exact?: string;
          readonly prefix?: string;
          readonly regex?: string;
        }>>;
        readonly port?: number;
        readonly sourceLabels?: Readonly<Record<string, string>>;
        readonly gateways?: readonly string[];
        readonly queryParams?: Readonly<Record<string, {
          readonly exact?: string;
          readonly prefix?: string;
          readonly regex?: string;
        }>>;
        readonly ignoreUriCase?: boolean;
        readonly withoutHeaders?: Readonly<Record<string, {
          readonly exact?: string;
          readonly prefix?: string;
          readonly regex?: string;
        }>>;
        readonly sourceNamespace?: string;
        readonly statPrefix?: string;
      }[];
      readonly route?: readonly {
        readonly destination: {
          readonly host: string;
          readonly subset?: string;
          readonly port?: {
            readonly number?: number;
          };
        };
        readonly weight?: number;
        readonly headers?: {
          readonly request?: {
            readonly set?: Readonly<Record<string, string>>;
            readonly add?: Readonly<Record<string, string>>;
            readonly remove?: readonly string[];
          };
          readonly response?: {
            readonly set?: Readonly<Record<string, string>>;
            readonly add?: Readonly<Record<string, string>>;
            readonly remove?: readonly string[];
          };
        };
      }[];
      readonly redirect?: {
        readonly uri?: string;
        readonly authority?: string;
        readonly port?: number;
        readonly derivePort?: "FROM_PROTOCOL_DEFAULT" | "FROM_REQUEST_PORT";
        readonly scheme?: string;
        readonly redirectCode?: number;
      };
      readonly directResponse?: {
        readonly status: number;
        readonly body?: {
          readonly string?: string;
          readonly bytes?: string;
        };
      };
      readonly delegate?: {
        readonly name?: string;
        readonly namespace?: string;
      };
      readonly rewrite?: {
        readonly uri?: string;
        readonly authority?: string;
        readonly uriRegexRewrite?: {
          readonly match?: string;
          readonly rewrite?: string;
        };
      };
      readonly timeout?: Duration;
      readonly retries?: {
        readonly attempts?: number;
        readonly perTryTimeout?: Duration;
        readonly retryOn?: string;
        readonly retryRemoteLocalities?: boolean;
        readonly retryIgnorePreviousHosts?: boolean;
        readonly backoff?: Duration;
      };
      readonly fault?: {
        readonly delay?: {
          readonly percent?: number;
          readonly fixedDelay?: Duration;
          readonly exponentialDelay?: Duration;
          readonly percentage?: {
            readonly value?: number;
          };
        };
        readonly abort?: {
          readonly httpStatus?: number;
          readonly grpcStatus?: string;
          readonly http2Error?: string;
          readonly percentage?: {
            readonly value?: number;
          };
        };
      };
      readonly mirror?: {
        readonly host: string;
        readonly subset?: string;
        readonly port?: {
          readonly number?: number;
        };
      };
      readonly mirrors?: readonly {
        readonly destination: {
          readonly host: string;
          readonly subset?: string;
          readonly port?: {
            readonly number?: number;
          };
        };
        readonly percentage?: {
          readonly value?: number;
        };
      }[];
      readonly mirrorPercent?: number;
      readonly mirrorPercentage?: {
        readonly value?: number;
      };
      readonly corsPolicy?: {
        readonly allowOrigin?: readonly string[];
        readonly allowOrigins?: readonly {
          readonly exact?: string;
          readonly prefix?: string;
          readonly regex?: string;
        }[];
        readonly allowMethods?: readonly string[];
        readonly allowHeaders?: readonly string[];
        readonly exposeHeaders?: readonly string[];
        readonly maxAge?: Duration;
        readonly allowCredentials?: boolean;
        readonly unmatchedPreflights?: "UNSPECIFIED" | "FORWARD" | "IGNORE";
      };
      readonly headers?: {
        readonly request?: {
          readonly set?: Readonly<Record<string, string>>;
          readonly add?: Readonly<Record<string, string>>;
          readonly remove?: readonly string[];
        };
        readonly response?: {
          readonly set?: Readonly<Record<string, string>>;
          readonly add?: Readonly<Record<string, string>>;
          readonly remove?: readonly string[];
        };
      };
    }[];
    readonly tls?: readonly {
      readonly match?: readonly {
        readonly sniHosts?: readonly string[];
        readonly destinationSubnets?: readonly string[];
        readonly port?: number;
        readonly sourceLabels?: Readonly<Record<string, string>>;
        readonly gateways?: readonly string[];
        readonly sourceNamespace?: string;
      }[];
      readonly route?: readonly {
        readonly destination: {
          readonly host: string;
          readonly subset?: string;
          readonly port?: {
            readonly number?: number;
          };
        };
        readonly weight?: number;
      }[];
    }[];
    readonly tcp?: readonly {
      readonly match?: readonly {
        readonly destinationSubnets?: readonly string[];
        readonly port?: number;
        readonly sourceSubnet?: string;
        readonly sourceLabels?: Readonly<Record<string, string>>;
        readonly gateways?: readonly string[];
        readonly sourceNamespace?: string;
      }[];
      readonly route?: readonly {
        readonly destination: {
          readonly host: string;
          readonly subset?: string;
          readonly port?: {
            readonly number?: number;
          };
        };
        readonly weight?: number;
      }[];
    }[];
    readonly exportTo?: readonly string[];
  };
}

/** networking.istio.io/v1 WorkloadEntry. */
export interface WorkloadEntry {
  readonly apiVersion: "networking.istio.io/v1" | "networking.istio.io/v1beta1" | "networking.istio.io/v1alpha3";
  readonly kind: "WorkloadEntry";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly address?: string;
    readonly ports?: Readonly<Record<string, number>>;
    readonly labels?: Readonly<Record<string, string>>;
    readonly network?: string;
    readonly locality?: string;
    readonly weight?: number;
    readonly serviceAccount?: string;
  };
}

/** networking.istio.io/v1 WorkloadGroup. */
export interface WorkloadGroup {
  readonly apiVersion: "networking.istio.io/v1" | "networking.istio.io/v1beta1" | "networking.istio.io/v1alpha3";
  readonly kind: "WorkloadGroup";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly metadata?: {
      readonly labels?: Readonly<Record<string, string>>;
      readonly annotations?: Readonly<Record<string, string>>;
    };
    readonly template: {
      readonly address?: string;
      readonly ports?: Readonly<Record<string, number>>;
      readonly labels?: Readonly<Record<string, string>>;
      readonly network?: string;
      readonly locality?: string;
      readonly weight?: number;
      readonly serviceAccount?: string;
    };
    readonly probe?: {
      readonly initialDelaySeconds?: number;
      readonly timeoutSeconds?: number;
      readonly periodSeconds?: number;
      readonly successThreshold?: number;
      readonly failureThreshold?: number;
      readonly httpGet?: {
        readonly path?: string;
        readonly port: number;
        readonly host?: string;
        readonly scheme?: string;
        readonly httpHeaders?: readonly {
          readonly name?: string;
          readonly value?: string;
        }[];
      };
      readonly tcpSocket?: {
        readonly host?: string;
        readonly port: number;
      };
      readonly exec?: {
        readonly command: readonly string[];
      };
      readonly grpc?: {
        readonly port?: number;
        readonly service?: string;
      };
    };
  };
}

/** networking.k8s.io/v1 Ingress. */
export interface Ingress {
  readonly apiVersion: "networking.k8s.io/v1";
  readonly kind: "Ingress";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly ingressClassName?: string;
    readonly defaultBackend?: {
      readonly service?: {
        readonly name?: string;
        readonly port?: {
          readonly name?: string;
          readonly number?: number;
          readonly [other: string]: unknown;
        };
        readonly [other: string]: unknown;
      };
      readonly resource?: Readonly<Record<string, unknown>>;
      readonly [other: string]: unknown;
    };
    readonly tls?: readonly {
      readonly hosts?: readonly string[];
      readonly secretName?: string;
      readonly [other: string]: unknown;
    }[];
    readonly rules?: readonly {
      readonly host?: string;
      readonly http?: {
        readonly paths?: readonly {
          readonly path?: string;
          readonly pathType?: string;
          readonly backend?: {
            readonly service?: {
              readonly name?: string;
              readonly port?: {
                readonly name?: string;
                readonly number?: number;
                readonly [other: string]: unknown;
              };
              readonly [other: string]: unknown;
            };
            readonly resource?: Readonly<Record<string, unknown>>;
            readonly [other: string]: unknown;
          };
          readonly [other: string]: unknown;
        }[];
        readonly [other: string]: unknown;
      };
      readonly [other: string]: unknown;
    }[];
    readonly [other: string]: unknown;
  };
}

/** networking.k8s.io/v1 IngressClass. */
export interface IngressClass {
  readonly apiVersion: "networking.k8s.io/v1";
  readonly kind: "IngressClass";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly controller?: string;
    readonly parameters?: Readonly<Record<string, unknown>>;
    readonly [other: string]: unknown;
  };
}

/** security.istio.io/v1 AuthorizationPolicy. */
export interface AuthorizationPolicy {
  readonly apiVersion: "security.istio.io/v1" | "security.istio.io/v1beta1";
  readonly kind: "AuthorizationPolicy";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly selector?: {
      readonly matchLabels?: Readonly<Record<string, string>>;
    };
    readonly targetRef?: {
      readonly group?: string;
      readonly kind: string;
      readonly name: string;
      readonly namespace?: string;
    };
    readonly targetRefs?: readonly {
      readonly group?: string;
      readonly kind: string;
      readonly name: string;
      readonly namespace?: string;
    }[];
    readonly rules?: readonly {
      readonly from?: readonly {
        readonly source: {
          readonly principals?: readonly string[];
          readonly notPrincipals?: readonly string[];
          readonly requestPrincipals?: readonly string[];
          readonly notRequestPrincipals?: readonly string[];
          readonly namespaces?: readonly string[];
          readonly notNamespaces?: readonly string[];
          readonly serviceAccounts?: readonly string[];
          readonly notServiceAccounts?: readonly string[];
          readonly ipBlocks?: readonly string[];
          readonly notIpBlocks?: readonly string[];
          readonly remoteIpBlocks?: readonly string[];
          readonly notRemoteIpBlocks?: readonly string[];
        };
      }[];
      readonly to?: readonly {
        readonly operation: {
          readonly hosts?: readonly string[];
          readonly notHosts?: readonly string[];
          readonly ports?: readonly string[];
          readonly notPorts?: readonly string[];
          readonly methods?: readonly string[];
          readonly notMethods?: readonly string[];
          readonly paths?: readonly string[];
          readonly notPaths?: readonly string[];
        };
      }[];
      readonly when?: readonly {
        readonly key: string;
        readonly values?: readonly string[];
        readonly notValues?: readonly string[];
      }[];
    }[];
    readonly action?: "ALLOW" | "DENY" | "AUDIT" | "CUSTOM";
    readonly provider?: {
      readonly name?: string;
    };
  };
}

/** security.istio.io/v1 PeerAuthentication. */
export interface PeerAuthentication {
  readonly apiVersion: "security.istio.io/v1" | "security.istio.io/v1beta1";
  readonly kind: "PeerAuthentication";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly selector?: {
      readonly matchLabels?: Readonly<Record<string, string>>;
    };
    readonly mtls?: {
      readonly mode?: "UNSET" | "DISABLE" | "PERMISSIVE" | "STRICT";
    };
    readonly portLevelMtls?: Readonly<Record<string, {
      readonly mode?: "UNSET" | "DISABLE" | "PERMISSIVE" | "STRICT";
    }>>;
  };
}

/** security.istio.io/v1 RequestAuthentication. */
export interface RequestAuthentication {
  readonly apiVersion: "security.istio.io/v1" | "security.istio.io/v1beta1";
  readonly kind: "RequestAuthentication";
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly selector?: {
      readonly matchLabels?: Readonly<Record<string, string>>;
    };
    readonly targetRef?: {
      readonly group?: string;
      readonly kind: string;
      readonly name: string;
      readonly namespace?: string;
    };
    readonly targetRefs?: readonly {
      readonly group?: string;
      readonly kind: string;
      readonly name: string;
      readonly namespace?: string;
    }[];
    readonly jwtRules?: readonly {
      readonly issuer?: string;
      readonly audiences?: readonly string[];
      readonly jwksUri?: string;
      readonly jwks?: string;
      readonly fromHeaders?: readonly {
        readonly name: string;
        readonly prefix?: string;
      }[];
      readonly fromParams?: readonly string[];
      readonly fromCookies?: readonly string[];
      readonly outputPayloadToHeader?: string;
      readonly forwardOriginalToken?: boolean;
      readonly outputClaimToHeaders?: readonly {
        readonly header: string;
        readonly claim: string;
      }[];
      readonly timeout?: Duration;
      readonly spaceDelimitedClaims?: readonly string[];
    }[];
  };
}

/** Any object that the mesh reads. */
export type MeshObject =
  | ConfigMap
  | Namespace
  | Node
  | Pod
  | Secret
  | Service
  | EndpointSlice
  | DestinationRule
  | EnvoyFilter
  | Gateway
  | ServiceEntry
  | Sidecar
  | ProxyConfig
  | VirtualService
  | WorkloadEntry
  | WorkloadGroup
  | Ingress
  | IngressClass
  | AuthorizationPolicy
  | PeerAuthentication
  | RequestAuthentication;
