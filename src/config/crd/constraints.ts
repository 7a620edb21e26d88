/**
 * What the API server checks of custom objects by itself, beyond their types: as Istio's definitions have it, so that objects
 * which one accepts the other does too. Bounds are also there because the cost of a rule is reckoned with them.
 */
import type { JsonSchema } from "./json-schema.ts";

/** Where constraints hold, and what they are. */
export interface Constraint {
  /** Ends of paths such as `ServiceEntry.spec.ports[].number`; `[]` is an item, `{}` a value of a map. */
  readonly at: readonly string[];
  readonly schema: JsonSchema;
}

const HEADER = "^[-_A-Za-z0-9]+$";
const GROUP = "^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const OBJECT_KIND = "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$";
const PORT_NAME = "^[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?$";
/** Where a workload describes itself. */
const WORKLOADS = ["ServiceEntry.spec.endpoints[]", "WorkloadEntry.spec", "WorkloadGroup.spec.template"];

/** All of them. */
export const CONSTRAINTS: readonly Constraint[] = [
  ...messages({
    "DestinationRule.spec": ["host"],
    "egressProxy|http[].mirror|mirrors[].destination|route[].destination": ["host"],
    "DestinationRule.spec.subsets[]|httpCookie|httpCookie.attributes[]|fromHeaders[]": ["name"],
    warmup: ["duration"],
    tunnel: ["targetHost", "targetPort"],
    "targetRef|targetRefs[]": ["kind", "name"],
    "Gateway.spec.servers[]": ["port", "hosts"],
    "Gateway.spec.servers[].port": ["number", "protocol", "name"],
    "ServiceEntry.spec|Sidecar.spec.egress[]": ["hosts"],
    "ServiceEntry.spec.ports[]": ["number", "name"],
    "Sidecar.spec.ingress[]|probe.httpGet|probe.tcpSocket": ["port"],
    directResponse: ["status"],
    "mirrors[]|http[].route[]|tcp[].route[]|tls[].route[]": ["destination"],
    "VirtualService.spec.tls[]": ["match"],
    "VirtualService.spec.tls[].match[]": ["sniHosts"],
    "WorkloadGroup.spec": ["template"],
    "probe.exec": ["command"],
    "AuthorizationPolicy.spec.rules[].when[]": ["key"],
    "jwtRules[].outputClaimToHeaders[]": ["header", "claim"],
    "customTags{}.environment|customTags{}.header|vmConfig.env[]|Telemetry.spec.tracing[].providers[]": ["name"],
    "Telemetry.spec.metrics[].providers[]|Telemetry.spec.accessLogging[].providers[]": ["name"],
    "customTags{}.literal|customTags{}.formatter": ["value"],
    "WasmPlugin.spec": ["url"],
    "WasmPlugin.spec.match[].ports[]": ["number"],
  }),
  ...durations(
    "http.idleTimeout|warmupDurationSecs|warmup.duration|outlierDetection.baseEjectionTime|outlierDetection.interval",
    "tcp.connectTimeout|tcp.maxConnectionDuration|tcpKeepalive.interval|tcpKeepalive.time|jwtRules[].timeout",
    "metrics[].reportingInterval|corsPolicy.maxAge|delay.exponentialDelay|delay.fixedDelay|http[].timeout|retries.backoff|retries.perTryTimeout",
  ),
  ...ports("waypoint.portNumber", "ServiceEntry.spec.ports[].number", "ServiceEntry.spec.ports[].targetPort"),
  ...ports("probe.grpc.port", "probe.httpGet.port", "probe.tcpSocket.port", ...of(WORKLOADS, "ports{}")),
  where(
    "localityLbSetting.enabled|warmup.aggression|warmup.minimumPercent|retryBudget.percent|tls.insecureSkipVerify",
    { nullable: true },
  ),
  where(
    "outlierDetection.consecutive5xxErrors|outlierDetection.consecutiveGatewayErrors|outlierDetection.consecutiveLocalOriginFailures",
    { nullable: true },
  ),
  where("ProxyConfig.spec.concurrency|corsPolicy.allowCredentials|http[].mirrorPercent|http[].mirror_percent", {
    nullable: true,
  }),
  where("retries.retryIgnorePreviousHosts|retries.retryRemoteLocalities", { nullable: true }),

  // Selectors
  where("selector.matchLabels|DestinationRule.spec.workloadSelector.matchLabels", {
    maxProperties: 4096,
    ...rules(
      ['self.all(key, !key.contains("*"))', "wildcard not allowed in label key match"],
      ["self.all(key, key.size() != 0)", "key must not be empty"],
    ),
  }),
  where("selector.matchLabels{}|DestinationRule.spec.workloadSelector.matchLabels{}", {
    maxLength: 63,
    ...rules(['!self.contains("*")', "wildcard not allowed in label value match"]),
  }),
  where("workloadSelector.labels", { maxProperties: 256 }),
  where("workloadSelector.labels{}", {
    maxLength: 63,
    ...rules(['!self.contains("*")', "wildcard is not supported in selector"]),
  }),
  where("AuthorizationPolicy.spec|RequestAuthentication.spec|Telemetry.spec|WasmPlugin.spec", {
    ...rules([atMostOne("selector", "targetRef", "targetRefs"), "only one of targetRefs or selector can be set"]),
  }),
  where("EnvoyFilter.spec", {
    ...rules([atMostOne("workloadSelector", "targetRefs"), "only one of targetRefs or workloadSelector can be set"]),
  }),
  where("targetRefs", { maxItems: 16 }),
  where("targetRef.group|targetRefs[].group", { maxLength: 253, pattern: GROUP }),
  where("targetRef.kind|targetRefs[].kind", { minLength: 1, maxLength: 63, pattern: OBJECT_KIND }),
  where("targetRef.name|targetRefs[].name", { minLength: 1, maxLength: 253 }),
  where("targetRef.namespace|targetRefs[].namespace", {
    ...rules(["self.size() == 0", "cross namespace referencing is not currently supported"]),
  }),

  // Networking
  where("warmup.minimumPercent|retryBudget.percent", { minimum: 0, maximum: 100 }),
  where("warmup.aggression", { minimum: 0 }),
  where("portLevelSettings", { maxItems: 4096 }),
  where("EnvoyFilter.spec.configPatches[].match", {
    ...rules([
      '(has(self.context) && self.context == "WAYPOINT") == has(self.waypoint)',
      "only support waypointMatch when context is WAYPOINT",
    ]),
  }),
  where("Gateway.spec.servers[].tls|Sidecar.spec.ingress[].tls", {
    ...rules(
      [atMostOne("tlsCertificates", "credentialNames"), "only one of credentialNames or tlsCertificates can be set"],
      [atMostOne("credentialName", "credentialNames"), "only one of credentialName or credentialNames can be set"],
      [atMostOne("credentialName", "tlsCertificates"), "only one of credentialName or tlsCertificates can be set"],
    ),
  }),
  where("tls.credentialNames|tls.tlsCertificates", { minItems: 1, maxItems: 2 }),
  where("ProxyConfig.spec.concurrency", { minimum: 0 }),
  where("ProxyConfig.spec.environmentVariables{}", { maxLength: 2048 }),

  // Services and workloads
  where("ServiceEntry.spec", {
    ...rules(
      [atMostOne("workloadSelector", "endpoints"), "only one of WorkloadSelector or Endpoints can be set"],
      [
        '!has(self.addresses) || !self.addresses.exists(k, k.contains("/")) || !has(self.resolution) || self.resolution in ["STATIC", "NONE"]',
        "CIDR addresses are allowed only for NONE/STATIC resolution types",
      ],
      ['has(self.resolution) && self.resolution != "NONE" || !has(self.endpoints)', "NONE mode cannot set endpoints"],
      [
        '!has(self.resolution) || self.resolution != "DNS_ROUND_ROBIN" || !has(self.endpoints) || self.endpoints.size() <= 1',
        "DNS_ROUND_ROBIN mode cannot have multiple endpoints",
      ],
    ),
  }),
  where("ServiceEntry.spec.hosts", { minItems: 1, maxItems: 256 }),
  where("ServiceEntry.spec.hosts[]", { ...rules(['self != "*"', "hostname cannot be wildcard"]) }),
  where("ServiceEntry.spec.addresses", { maxItems: 256 }),
  where("ServiceEntry.spec.addresses[]", { maxLength: 64 }),
  where("ServiceEntry.spec.endpoints", { maxItems: 4096 }),
  where("ServiceEntry.spec.ports", {
    maxItems: 256,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    ...rules(["self.all(l1, self.exists_one(l2, l1.number == l2.number))", "port number cannot be duplicated"]),
  }),
  where("ServiceEntry.spec.ports[].name|ServiceEntry.spec.ports[].protocol", { maxLength: 256 }),
  where("ServiceEntry.spec.endpoints[]|WorkloadEntry.spec", {
    ...rules(["has(self.address) || has(self.network)", "Address is required"]),
  }),
  {
    at: WORKLOADS,
    schema: rules([
      '!has(self.address) || !self.address.startsWith("unix://") || !has(self.ports)',
      "UDS may not include ports",
    ]),
  },
  {
    at: of(WORKLOADS, "address"),
    schema: {
      maxLength: 256,
      ...rules(
        [
          '!self.startsWith("unix://") || self.substring(7, 8) in ["/", "@"]',
          "UDS must be an absolute path or abstract socket",
        ],
        ['!self.startsWith("unix://") || !self.endsWith("/")', "UDS may not be a dir"],
      ),
    },
  },
  {
    at: of(WORKLOADS, "ports"),
    schema: {
      maxProperties: 128,
      ...rules([`self.all(key, size(key) < 63 && key.matches("${PORT_NAME}"))`, "port name must be valid"]),
    },
  },
  { at: of(WORKLOADS, "labels"), schema: { maxProperties: 256 } },
  { at: [...of(WORKLOADS, "network"), ...of(WORKLOADS, "locality")], schema: { maxLength: 2048 } },
  { at: of(WORKLOADS, "serviceAccount"), schema: { maxLength: 253 } },
  where("WorkloadGroup.spec.metadata.annotations|WorkloadGroup.spec.metadata.labels", { maxProperties: 256 }),
  where("probe.exec.command[]", { minLength: 1 }),
  where("probe.httpGet.httpHeaders[].name", { pattern: HEADER }),
  where("probe.httpGet.scheme", { ...rules(['self in ["", "HTTP", "HTTPS"]', "scheme must be one of [HTTP, HTTPS]"]) }),
  where(
    "WorkloadGroup.spec.probe.failureThreshold|WorkloadGroup.spec.probe.initialDelaySeconds|WorkloadGroup.spec.probe.periodSeconds",
    { minimum: 0 },
  ),
  where("WorkloadGroup.spec.probe.successThreshold|WorkloadGroup.spec.probe.timeoutSeconds", { minimum: 0 }),

  // Security
  where("AuthorizationPolicy.spec.rules|AuthorizationPolicy.spec.rules[].from", { maxItems: 512 }),
  where("AuthorizationPolicy.spec.rules[].from[].source", {
    ...rules([
      "!has(self.serviceAccounts) && !has(self.notServiceAccounts) || !has(self.principals) && !has(self.notPrincipals) && !has(self.namespaces) && !has(self.notNamespaces)",
      "Cannot set serviceAccounts with namespaces or principals",
    ]),
  }),
  where("source.serviceAccounts|source.notServiceAccounts", { maxItems: 16 }),
  where("source.serviceAccounts[]|source.notServiceAccounts[]", { maxLength: 320 }),
  where("PeerAuthentication.spec", {
    ...rules([
      "!has(self.portLevelMtls) || has(self.selector) && has(self.selector.matchLabels) && self.selector.matchLabels.size() > 0",
      "portLevelMtls requires selector",
    ]),
  }),
  where("PeerAuthentication.spec.portLevelMtls", {
    minProperties: 1,
    ...rules(["self.all(key, 0 < int(key) && int(key) <= 65535)", "port must be between 1-65535"]),
  }),
  where("RequestAuthentication.spec.jwtRules", { maxItems: 4096 }),
  where("RequestAuthentication.spec.jwtRules[]", {
    ...rules([atMostOne("jwksUri", "jwks_uri", "jwks"), "only one of jwks or jwksUri can be set"]),
  }),
  where("jwtRules[].jwksUri|jwtRules[].jwks_uri", {
    minLength: 1,
    maxLength: 2048,
    ...rules(['url(self).getScheme() in ["http", "https"]', "url must have scheme http:// or https://"]),
  }),
  where("jwtRules[].audiences[]|jwtRules[].fromCookies[]|jwtRules[].fromParams[]|jwtRules[].fromHeaders[].name", {
    minLength: 1,
  }),
  where("jwtRules[].issuer|jwtRules[].outputClaimToHeaders[].claim|jwtRules[].spaceDelimitedClaims[]", {
    minLength: 1,
  }),
  where("jwtRules[].outputClaimToHeaders[].header", { minLength: 1, pattern: HEADER }),
  where("jwtRules[].spaceDelimitedClaims", { maxItems: 64 }),

  // Telemetry and extensions
  where("tracing[].disableSpanReporting|tracing[].enableIstioTags|tracing[].useRequestIdForTraceSampling", {
    nullable: true,
  }),
  where("accessLogging[].disabled|overrides[].disabled|WasmPlugin.spec.priority", { nullable: true }),
  where("tracing[].randomSamplingPercentage", { nullable: true, minimum: 0, maximum: 100 }),
  where("providers[].name|customMetric|customTags{}.environment.name|customTags{}.header.name", { minLength: 1 }),
  where("customTags{}.literal.value|customTags{}.formatter.value", { minLength: 1 }),
  where("tagOverrides{}", {
    ...rules(
      [
        '!has(self.operation) || self.operation != "UPSERT" || self.value != ""',
        "value must be set when operation is UPSERT",
      ],
      [
        '!has(self.operation) || self.operation != "REMOVE" || !has(self.value)',
        "value must not be set when operation is REMOVE",
      ],
    ),
  }),
  where("WasmPlugin.spec.url", {
    minLength: 1,
    ...rules([
      'isURL(self) ? url(self).getScheme() in ["", "http", "https", "oci", "file"] : isURL("http://" + self)',
      "url must have schema one of [http, https, file, oci]",
    ]),
  }),
  where("WasmPlugin.spec.sha256", { pattern: "(^$|^[a-f0-9]{64}$)" }),
  where("WasmPlugin.spec.imagePullSecret", { minLength: 1, maxLength: 253 }),
  where("WasmPlugin.spec.pluginName|vmConfig.env[].name", { minLength: 1, maxLength: 256 }),
  where("vmConfig.env[].value", { maxLength: 2048 }),
  where("vmConfig.env", {
    maxItems: 256,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
  }),
  where("vmConfig.env[]", {
    ...rules([
      '!has(self.valueFrom) || self.valueFrom != "HOST" || !has(self.value)',
      "value may only be set when valueFrom is INLINE",
    ]),
  }),
  where("WasmPlugin.spec.match[].ports", {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["number"],
  }),
  where("WasmPlugin.spec.match[].ports[].number", { minimum: 1, maximum: 65535 }),
];

function where(at: string, schema: JsonSchema): Constraint {
  return { at: at.split("|"), schema };
}

function messages(required: Readonly<Record<string, readonly string[]>>): readonly Constraint[] {
  return Object.entries(required).map(([at, fields]) => where(at, { required: fields }));
}

function durations(...at: readonly string[]): readonly Constraint[] {
  const least = rules(["duration(self) >= duration('1ms')", "must be a valid duration greater than 1ms"]);
  return at.map((paths) => where(paths, least));
}

function ports(...at: readonly string[]): readonly Constraint[] {
  return [{ at, schema: rules(["0 < self && self <= 65535", "port must be between 1-65535"]) }];
}

/** A field of each of several messages. */
function of(places: readonly string[], field: string): readonly string[] {
  return places.map((place) => `${place}.${field}`);
}

function atMostOne(...fields: readonly string[]): string {
  return `${fields.map((field) => `(has(self.${field}) ? 1 : 0)`).join(" + ")} <= 1`;
}

function rules(...list: readonly (readonly [rule: string, message: string])[]): JsonSchema {
  return { "x-kubernetes-validations": list.map(([text, message]) => ({ rule: text, message })) };
}
