/** What `kubectl explain` says about kinds and their fields. */

/**
 * Fields by the end of their path, as in `constraints.ts`; the longest end counts. Fields of many messages that need no word (such
 * as `name`) have none.
 */
export const FIELD_DESCRIPTIONS: Readonly<Record<string, string>> = {
  exportTo: "Namespaces that see it: `.` is its own, `*` all, `~` none",
  selector:
    "Workloads that it is for, by labels; without it all of the namespace, or in the root namespace of the mesh",
  "selector.matchLabels": "Labels that a workload must have, all of them",
  workloadSelector: "Workloads that it is for, by labels; without it all of the namespace",
  targetRef: "The object that it is attached to, instead of a selector",
  targetRefs: "Objects that it is attached to, instead of a selector",

  "VirtualService.spec.hosts": "Names that requests are addressed to; `*.example.com` stands for many",
  "VirtualService.spec.gateways": "Gateways where the routes hold; `mesh` stands for all sidecars and is the default",
  "VirtualService.spec.http": "Routes of HTTP requests; the first that matches counts",
  "VirtualService.spec.tls": "Routes of TLS connections that are not ended here, by server name",
  "VirtualService.spec.tcp": "Routes of all other connections",
  "http[].match": "One of these has to hold; without any, every request matches",
  "http[].route": "Destinations, by weight",
  "http[].redirect": "Answers with a redirection",
  "http[].directResponse": "Answers with a status and a body",
  "http[].delegate": "Another VirtualService that has the routes",
  "http[].rewrite": "Changes path or authority before the request is sent on",
  "http[].timeout": "How long the whole request may take, such as 5s",
  "http[].retries": "When and how often a request is tried again",
  "http[].fault": "Delays or refuses requests on purpose",
  "http[].mirror": "Where a copy of the request goes",
  "http[].mirrors": "Where copies of the request go",
  "http[].mirrorPercentage": "How many requests are copied",
  "http[].corsPolicy": "Who may call from pages of other origins",
  "http[].headers": "Headers that are set, added or removed",
  "retries.attempts": "How often it is tried again",
  "retries.perTryTimeout": "How long one attempt may take",
  "retries.retryOn": "Conditions, such as 5xx,connect-failure",
  "destination.host": "Name of a service",
  "destination.subset": "A subset that a DestinationRule defines",
  "destination.port": "Port of the service, where it has several",
  "route[].weight": "Its share of all weights",

  "DestinationRule.spec.host": "The service that the rule is about",
  "DestinationRule.spec.subsets": "Parts of the service by labels, such as its versions",
  trafficPolicy: "Load balancing, connections, health and TLS",
  "trafficPolicy.loadBalancer": "How an endpoint is chosen",
  "trafficPolicy.connectionPool": "Limits of connections and requests",
  "trafficPolicy.outlierDetection": "When endpoints that fail are left out for a while",
  "trafficPolicy.tls": "TLS towards the service",
  "trafficPolicy.portLevelSettings": "Other settings for single ports",
  "trafficPolicy.tls.mode": "DISABLE, SIMPLE, MUTUAL with own certificates, or ISTIO_MUTUAL with those of the mesh",

  "Gateway.spec.servers": "Ports, with hosts and TLS",
  "Gateway.spec.selector": "Labels of the pods that open the ports",
  "servers[].hosts": "Names that are served, with a namespace before a slash if need be",
  "servers[].port": "Number, name and protocol",
  "servers[].tls": "Certificates, and whether callers need some",
  "tls.credentialName": "The Secret with certificate and key",
  "tls.httpsRedirect": "Answers plain requests with a redirection to HTTPS",

  "ServiceEntry.spec.hosts": "Names of the service",
  "ServiceEntry.spec.addresses": "Virtual addresses, or ranges of them",
  "ServiceEntry.spec.ports": "Ports of the service",
  "ServiceEntry.spec.location": "MESH_INTERNAL, with mutual TLS, or MESH_EXTERNAL",
  "ServiceEntry.spec.resolution":
    "How addresses are found: NONE (where callers go), STATIC (endpoints), DNS, DNS_ROUND_ROBIN",
  "ServiceEntry.spec.endpoints": "Workloads behind it",
  "ServiceEntry.spec.subjectAltNames": "Identities that its servers may have",

  "Sidecar.spec.ingress": "Ports that the workload takes traffic on, instead of those of its services",
  "Sidecar.spec.egress": "Hosts that the workload may know, by namespace",
  "Sidecar.spec.outboundTrafficPolicy": "What happens to calls of hosts that nobody knows",
  "Sidecar.spec.inboundConnectionPool": "Limits of connections to the workload",

  "WorkloadEntry.spec.address": "An address, a name or the path of a socket",
  "WorkloadEntry.spec.ports": "Numbers of named ports, where they are others than the service's",
  "WorkloadEntry.spec.labels": "By these services select it",
  "WorkloadEntry.spec.network": "The network it is in: those of one network reach each other",
  "WorkloadEntry.spec.locality": "region/zone/subzone",
  "WorkloadEntry.spec.weight": "Its share of the traffic",
  "WorkloadEntry.spec.serviceAccount": "Its identity",
  "WorkloadGroup.spec.metadata": "Labels and annotations of entries",
  "WorkloadGroup.spec.template": "What entries begin with",
  "WorkloadGroup.spec.probe": "How an agent finds out whether its workload is healthy",

  "EnvoyFilter.spec.configPatches": "Changes, in their order",
  "EnvoyFilter.spec.priority": "Lower ones are applied first",
  "configPatches[].applyTo": "What is changed: LISTENER, HTTP_FILTER, CLUSTER, ...",
  "configPatches[].match": "Which of them",
  "configPatches[].patch": "What is done, and with what",

  "ProxyConfig.spec.concurrency": "Threads of the proxy; 0 is as many as there are cores",
  "ProxyConfig.spec.environmentVariables": "More environment of the proxy",
  "ProxyConfig.spec.image": "Variant of the proxy's image",

  "AuthorizationPolicy.spec.action": "ALLOW, DENY, AUDIT or CUSTOM for requests that a rule matches",
  "AuthorizationPolicy.spec.rules": "One of these has to match; without any, none does",
  "AuthorizationPolicy.spec.provider": "Who decides for CUSTOM, by a name of the mesh config",
  "rules[].from": "Who calls",
  "rules[].to": "What is called",
  "rules[].when": "Further conditions",
  "PeerAuthentication.spec.mtls": "Mutual TLS of all ports",
  "PeerAuthentication.spec.portLevelMtls": "Mutual TLS of single ports, by number",
  "mtls.mode": "UNSET, DISABLE, PERMISSIVE (also plain text) or STRICT",
  "RequestAuthentication.spec.jwtRules": "Issuers, their keys, and where their tokens are",
  "jwtRules[].issuer": "Who issued the token",
  "jwtRules[].audiences": "Whom the token is for; one of these",
  "jwtRules[].jwksUri": "Where keys are fetched",
  "jwtRules[].jwks": "The keys themselves",
  "jwtRules[].forwardOriginalToken": "Whether the application sees the token",

  "Telemetry.spec.tracing": "Which requests are traced, by whom, with which tags",
  "Telemetry.spec.metrics": "Who collects metrics, and what is different in them",
  "Telemetry.spec.accessLogging": "Who writes access logs, and of which requests",
  "tracing[].randomSamplingPercentage": "Share of requests that are traced, 0 to 100",
  "WasmPlugin.spec.url": "Where the module is: oci://, https://, http:// or file://",
  "WasmPlugin.spec.sha256": "Checksum of the module",
  "WasmPlugin.spec.phase": "Where in the chain of filters it stands",
  "WasmPlugin.spec.priority": "Higher ones of the same phase stand before",
  "WasmPlugin.spec.pluginConfig": "Settings that the module is given",
  "WasmPlugin.spec.failStrategy": "Whether requests are refused when it fails",
  "WasmPlugin.spec.match": "Which traffic it sees",
  "WasmPlugin.spec.vmConfig": "Environment of the module",
  "WasmPlugin.spec.imagePullPolicy": "Whether the module is fetched again though it is there: IfNotPresent, Always",
  "WasmPlugin.spec.pluginName": "A name for the filter, in statistics and logs",
  "WasmPlugin.spec.type": "HTTP, or NETWORK for connections",
  "WasmPlugin.spec.verificationKey": "A key by which the module has to be signed",
  "WasmPlugin.spec.imagePullSecret": "The Secret by which the module is fetched",
};

/** What is said of a field; undefined when nothing is. */
export function fieldDescription(path: string): string | undefined {
  const steps = path.split(".");
  const ends = steps.map((_, i) => steps.slice(i).join("."));
  const known = ends.find((end) => Object.hasOwn(FIELD_DESCRIPTIONS, end));
  return known === undefined ? undefined : FIELD_DESCRIPTIONS[known];
}
