/** Kubernetes v1 Service. */
import { type Infer, list, map, message, required } from "../../schema/message.ts";
import { bool, enumeration, int32, intOrString, string, struct } from "../../schema/scalars.ts";

const portSchema = message({
  name: string(),
  protocol: enumeration("TCP", "UDP", "SCTP"),
  appProtocol: string(),
  port: required(int32()),
  targetPort: intOrString(),
  nodePort: int32(),
});

/** Schema of the spec of a Service. */
export const serviceSchema = message({
  ports: list(portSchema),
  selector: map(string()),
  /** `None` makes the service headless. */
  clusterIP: string(),
  clusterIPs: list(string()),
  type: enumeration("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"),
  externalIPs: list(string()),
  sessionAffinity: string(),
  sessionAffinityConfig: struct(),
  loadBalancerIP: string(),
  loadBalancerSourceRanges: list(string()),
  loadBalancerClass: string(),
  externalName: string(),
  externalTrafficPolicy: string(),
  internalTrafficPolicy: string(),
  trafficDistribution: string(),
  healthCheckNodePort: int32(),
  publishNotReadyAddresses: bool(),
  ipFamilies: list(string()),
  ipFamilyPolicy: string(),
  allocateLoadBalancerNodePorts: bool(),
});

/** Schema of the status of a Service: where a load balancer outside takes its requests. */
export const serviceStatusSchema = message({
  loadBalancer: message({ ingress: list(message({ ip: string(), hostname: string() })) }),
});

/** The status of a Kubernetes Service. */
export type ServiceStatus = Infer<typeof serviceStatusSchema>;
/** The spec of a Kubernetes Service; what the mesh makes of it is `Service` of the model. */
export type Service = Infer<typeof serviceSchema>;
/** A port of a Kubernetes Service. */
export type KubernetesServicePort = Infer<typeof portSchema>;
