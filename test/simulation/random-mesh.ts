/**
 * Random but plausible configuration: objects that refer to one another, and sometimes to nothing. Many of them are wrong;
 * those are for the checks to find. Whatever passes the checks must be configuration that Envoy accepts.
 */
import fc from "fast-check";
import { randomPatches } from "./random-patches.ts";
import { randomSidecar } from "./random-sidecar.ts";

type Json = Readonly<Record<string, unknown>>;

const NAMESPACES = ["default", "prod", "istio-system"];
const NAMES = ["web", "api", "db", "cache", "reviews"];
const namespace = fc.constantFrom(...NAMESPACES);
const name = fc.constantFrom(...NAMES);
const version = fc.constantFrom("v1", "v2", "v3");
const port = fc.constantFrom(80, 443, 3306, 8000, 8080, 9080);
const address = fc
  .tuple(fc.integer({ min: 1, max: 250 }), fc.integer({ min: 1, max: 250 }))
  .map(([a, b]) => `10.9.${a}.${b}`);
const duration = fc.constantFrom("1s", "0.5s", "250ms", "1m30s", "1h");
const portName = fc.constantFrom(
  "http",
  "http-web",
  "tcp",
  "tcp-db",
  "grpc",
  "http2",
  "https",
  "tls",
  "redis",
  "mysql",
  "mongo",
  "web",
);

/** A service as people write it. */
const serviceHost = fc.oneof(
  name,
  fc.tuple(name, namespace).map(([n, ns]) => `${n}.${ns}`),
  fc.tuple(name, namespace).map(([n, ns]) => `${n}.${ns}.svc.cluster.local`),
  fc.constantFrom("example.com", "a.b.example.com"),
);
const wildcard = fc.constantFrom("*.example.com", "*.wild.example.org", "*");
/** A host as people write it, short, qualified, foreign or a wildcard. */
const host = fc.oneof({ arbitrary: serviceHost, weight: 6 }, { arbitrary: wildcard, weight: 1 });

function object(kind: string, apiVersion: string, spec: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
  const metadata = fc.record({ name: fc.tuple(name, version).map(([n, v]) => `${n}-${v}`), namespace });
  return fc.record({ apiVersion: fc.constant(apiVersion), kind: fc.constant(kind), metadata, spec });
}

/** Fields may be left out: most of a configuration is. */
function some(fields: Record<string, fc.Arbitrary<unknown>>, always: readonly string[] = []): fc.Arbitrary<Json> {
  return fc.record(fields, { requiredKeys: [...always] });
}

const servicePorts = fc.uniqueArray(
  some(
    {
      port,
      name: portName,
      targetPort: fc.oneof(port, fc.constant("named")),
      protocol: fc.constantFrom("TCP", "UDP"),
      appProtocol: fc.constantFrom("http", "tcp", "grpc", "kubernetes.io/h2c"),
    },
    ["port", "name"],
  ),
  { minLength: 1, maxLength: 4, selector: (p) => p.port },
);

const service = fc
  .record({
    apiVersion: fc.constant("v1"),
    kind: fc.constant("Service"),
    metadata: fc.record({ name, namespace }),
    spec: some(
      {
        ports: servicePorts,
        selector: fc.record({ app: name }),
        clusterIP: fc.oneof(fc.constant("None"), address),
      },
      ["ports"],
    ),
  })
  .map((value) => value as Json);

const entryPorts = fc.uniqueArray(
  some(
    {
      number: port,
      name: fc.constantFrom("a", "b", "c"),
      protocol: fc.constantFrom("HTTP", "HTTPS", "TCP", "TLS", "GRPC", "HTTP2", "MONGO"),
      targetPort: port,
    },
    ["number", "name", "protocol"],
  ),
  { minLength: 1, maxLength: 3, selector: (p) => p.name },
);

const endpoint = (where: fc.Arbitrary<string>) =>
  some(
    {
      address: where,
      ports: fc.dictionary(fc.constant("a"), port),
      labels: fc.record({ version }),
      serviceAccount: name,
      weight: fc.integer({ min: 0, max: 200 }),
      locality: fc.constantFrom("r1/z1", "r2"),
      network: fc.constantFrom("", "n1"),
    },
    ["address"],
  );

const entryFields = {
  hosts: fc.uniqueArray(
    fc.oneof({ arbitrary: serviceHost, weight: 6 }, { arbitrary: fc.constant("*.example.com"), weight: 1 }),
    { minLength: 1, maxLength: 2 },
  ),
  ports: entryPorts,
  location: fc.constantFrom("MESH_INTERNAL", "MESH_EXTERNAL"),
  exportTo: fc.array(fc.constantFrom("*", ".", "prod"), { minLength: 1, maxLength: 1 }),
  subjectAltNames: fc.array(fc.constantFrom("spiffe://x/y", "example.com"), { maxLength: 2 }),
};
const networks = fc.array(fc.oneof(address, fc.constant("10.8.0.0/16")), { maxLength: 2 });
const numbered = fc.array(endpoint(address), { minLength: 1, maxLength: 3 });
const named = fc.array(endpoint(fc.oneof(address, fc.constant("backend.example.com"))), { minLength: 1, maxLength: 3 });
const serviceEntrySpec = fc.oneof(
  some({ ...entryFields, addresses: networks, resolution: fc.constant("NONE") }, ["hosts", "ports"]),
  some({ ...entryFields, addresses: networks, resolution: fc.constant("STATIC"), endpoints: numbered }, [
    "hosts",
    "ports",
    "resolution",
    "endpoints",
  ]),
  some(
    {
      ...entryFields,
      addresses: fc.array(address, { maxLength: 2 }),
      resolution: fc.constantFrom("DNS", "DNS_ROUND_ROBIN"),
      endpoints: named,
    },
    ["hosts", "ports", "resolution"],
  ),
);
const serviceEntry = object("ServiceEntry", "networking.istio.io/v1", serviceEntrySpec);

const workloadEntry = object(
  "WorkloadEntry",
  "networking.istio.io/v1",
  some(
    {
      address,
      labels: fc.record({ app: name, version }),
      serviceAccount: name,
      ports: fc.dictionary(fc.constantFrom("http", "named"), port),
    },
    ["address", "labels"],
  ),
);

const stringMatch = fc.oneof(
  fc.constantFrom("/", "/api", "/a/b", "jason", "GET").map((exact) => ({ exact })),
  fc.constantFrom("/", "/api", "v").map((prefix) => ({ prefix })),
  fc.constantFrom("/a.*", "^v[0-9]+$", ".*").map((regex) => ({ regex })),
);
const destination = some({ host: serviceHost, subset: version, port: fc.record({ number: port }) }, ["host"]);
const headerOperations = some({
  set: fc.dictionary(fc.constantFrom("x-a", "x-b"), fc.constantFrom("1", "", "%START_TIME%")),
  add: fc.dictionary(fc.constant("x-c"), fc.constant("2")),
  remove: fc.array(fc.constantFrom("x-d", "x-e"), { maxLength: 2 }),
});
const headers = some({ request: headerOperations, response: headerOperations });
const weighted = fc.array(some({ destination, weight: fc.constantFrom(1, 20, 50, 80), headers }, ["destination"]), {
  minLength: 1,
  maxLength: 3,
});

const httpMatches = fc.array(
  some({
    uri: stringMatch,
    method: stringMatch,
    headers: fc.dictionary(
      fc.constantFrom("end-user", "x-v", "cookie", "@request.auth.claims[a][b]"),
      fc.oneof(stringMatch, fc.constant({})),
    ),
    withoutHeaders: fc.dictionary(fc.constant("x-no"), stringMatch),
    queryParams: fc.dictionary(fc.constant("q"), stringMatch),
    authority: stringMatch,
    ignoreUriCase: fc.boolean(),
    port,
    sourceLabels: fc.record({ app: name }),
    gateways: fc.array(fc.constantFrom("mesh", "web-v1", "prod/web-v1"), { maxLength: 2 }),
  }),
  { maxLength: 2 },
);
const matched = { name: fc.constantFrom("first", "second"), match: httpMatches };
const percentage = fc.record({ value: fc.constantFrom(0, 0.01, 33.3, 100) });
const redirect = some({
  uri: fc.constant("/moved"),
  authority: fc.constant("moved.example.com"),
  redirectCode: fc.constantFrom(301, 307),
});
const forwardingRoute = some(
  {
    ...matched,
    route: weighted,
    timeout: duration,
    retries: some(
      {
        attempts: fc.integer({ min: 1, max: 5 }),
        perTryTimeout: duration,
        retryOn: fc.constantFrom("5xx", "gateway-error,503", "connect-failure,refused-stream"),
      },
      ["attempts"],
    ),
    fault: some({
      delay: fc.record({ fixedDelay: duration, percentage }),
      abort: fc.record({ httpStatus: fc.constantFrom(200, 500, 555), percentage }),
    }),
    rewrite: some({ uri: fc.constantFrom("/", "/new"), authority: fc.constant("new.example.com") }),
    mirror: destination,
    mirrorPercentage: percentage,
    corsPolicy: some({
      allowOrigins: fc.array(stringMatch, { maxLength: 2 }),
      allowMethods: fc.constant(["GET"]),
      maxAge: fc.constantFrom("1s", "24h"),
      allowCredentials: fc.boolean(),
    }),
    headers,
  },
  ["route"],
);
const directResponse = fc.record({
  status: fc.constantFrom(200, 503),
  body: fc.record({ string: fc.constant("hello") }),
});
const httpRoute = fc.oneof(
  { arbitrary: forwardingRoute, weight: 6 },
  { arbitrary: some({ ...matched, redirect }, ["redirect"]), weight: 1 },
  { arbitrary: some({ ...matched, directResponse }, ["directResponse"]), weight: 1 },
);

const virtualService = object(
  "VirtualService",
  "networking.istio.io/v1",
  some(
    {
      hosts: fc.uniqueArray(host, { minLength: 1, maxLength: 3 }),
      gateways: fc.array(fc.constantFrom("mesh", "web-v1", "api-v2", "prod/web-v1", "istio-system/web-v1"), {
        minLength: 1,
        maxLength: 3,
      }),
      http: fc.array(httpRoute, { minLength: 1, maxLength: 4 }),
      tcp: fc.array(
        some(
          {
            match: fc.array(some({ port, destinationSubnets: fc.constant(["10.0.0.0/8"]) }), { maxLength: 1 }),
            route: weighted,
          },
          ["route"],
        ),
        { maxLength: 1 },
      ),
      tls: fc.array(
        fc.record({
          match: fc.array(fc.record({ sniHosts: fc.array(host, { minLength: 1, maxLength: 2 }), port }), {
            minLength: 1,
            maxLength: 1,
          }),
          route: weighted,
        }),
        { maxLength: 1 },
      ),
      exportTo: fc.array(fc.constantFrom("*", "."), { minLength: 1, maxLength: 1 }),
    },
    ["hosts", "http"],
  ),
);

const trafficPolicy = some({
  tls: some(
    {
      mode: fc.constantFrom("DISABLE", "SIMPLE", "MUTUAL", "ISTIO_MUTUAL"),
      sni: fc.constant("sni.example.com"),
      clientCertificate: fc.constant("/etc/certs/cert.pem"),
      privateKey: fc.constant("/etc/certs/key.pem"),
      caCertificates: fc.constant("/etc/certs/root.pem"),
      subjectAltNames: fc.constant(["example.com"]),
    },
    ["mode"],
  ),
  loadBalancer: fc.oneof(
    fc
      .constantFrom("ROUND_ROBIN", "LEAST_REQUEST", "RANDOM", "PASSTHROUGH", "LEAST_CONN", "UNSPECIFIED")
      .map((simple) => ({ simple })),
    fc.constant({ consistentHash: { httpHeaderName: "x-user" } }),
    fc.constant({ consistentHash: { useSourceIp: true } }),
  ),
  connectionPool: some({
    tcp: some({ maxConnections: fc.integer({ min: 0, max: 100 }), connectTimeout: duration }),
    http: some({
      http1MaxPendingRequests: fc.integer({ min: 0, max: 10 }),
      http2MaxRequests: fc.integer({ min: 0, max: 10 }),
      maxRequestsPerConnection: fc.integer({ min: 0, max: 10 }),
      maxRetries: fc.integer({ min: 0, max: 10 }),
      idleTimeout: duration,
      h2UpgradePolicy: fc.constantFrom("UPGRADE", "DO_NOT_UPGRADE", "DEFAULT"),
    }),
  }),
  outlierDetection: some({
    consecutive5xxErrors: fc.integer({ min: 0, max: 10 }),
    interval: duration,
    baseEjectionTime: duration,
    maxEjectionPercent: fc.integer({ min: 0, max: 100 }),
    minHealthPercent: fc.integer({ min: 0, max: 100 }),
  }),
});

const destinationRule = object(
  "DestinationRule",
  "networking.istio.io/v1",
  some(
    {
      host,
      trafficPolicy,
      subsets: fc.uniqueArray(
        some({ name: version, labels: fc.record({ version }), trafficPolicy }, ["name", "labels"]),
        { maxLength: 3, selector: (s) => s.name },
      ),
      exportTo: fc.array(fc.constantFrom("*", "."), { minLength: 1, maxLength: 1 }),
    },
    ["host"],
  ),
);

const gatewayHost = fc.oneof(
  fc.tuple(name, namespace).map(([n, ns]) => `${n}.${ns}.svc.cluster.local`),
  fc.constantFrom("example.com", "a.b.example.com", "*.example.com", "*", "*/*", "prod/*", "./web.example.com"),
);

const gateway = object(
  "Gateway",
  "networking.istio.io/v1",
  fc.record({
    selector: fc.constant({ istio: "ingressgateway" }),
    servers: fc.uniqueArray(
      fc.record({
        port: fc.record({
          number: fc.constantFrom(80, 8080, 8081, 15443),
          name: fc.constantFrom("http", "http-2", "h3"),
          protocol: fc.constantFrom("HTTP", "HTTP2", "GRPC"),
        }),
        hosts: fc.uniqueArray(gatewayHost, { minLength: 1, maxLength: 3 }),
      }),
      { minLength: 1, maxLength: 3, selector: (server) => server.port.name },
    ),
  }),
);

const peerAuthentication = object(
  "PeerAuthentication",
  "security.istio.io/v1",
  some({
    mtls: fc.record({ mode: fc.constantFrom("UNSET", "DISABLE", "PERMISSIVE", "STRICT") }),
    selector: fc.record({ matchLabels: fc.record({ app: name }) }),
    portLevelMtls: fc.dictionary(
      fc.constantFrom("80", "8080", "9080"),
      fc.record({ mode: fc.constantFrom("DISABLE", "PERMISSIVE", "STRICT") }),
    ),
  }),
);

const texts = (...values: string[]) => fc.uniqueArray(fc.constantFrom(...values), { minLength: 1, maxLength: 3 });
const ranges = texts("10.0.0.0/8", "1.2.3.4", "fd00::/8", "0.0.0.0/0", "::1");
const principals = texts("*", "cluster.local/ns/default/sa/a", "*/sa/b", "td/ns/a.b/sa/*", "sa(");
const attributes = texts("*", "a", "a*", "*a", "a[0]", "a.b+c");

const token = fc.record(
  {
    issuer: fc.constantFrom("https://a.example", "https://b.example/", "me"),
    jwksUri: fc.constantFrom(
      "https://a.example/keys",
      "http://web.default:8080/keys",
      "http://api.prod.svc.cluster.local",
    ),
    jwks: fc.constantFrom(
      '{"keys": [{"kty": "oct", "k": "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75"}]}',
      "x",
    ),
    audiences: fc.array(fc.constantFrom("a", "b", ""), { maxLength: 2 }),
    fromHeaders: fc.array(fc.constantFrom({ name: "x-jwt", prefix: "Bearer " }, { name: "X-Token" }), { maxLength: 2 }),
    fromParams: fc.array(fc.constantFrom("token", "a b"), { maxLength: 2 }),
    fromCookies: fc.array(fc.constantFrom("token", "session"), { maxLength: 2 }),
    outputPayloadToHeader: fc.constantFrom("x-payload", "x payload"),
    outputClaimToHeaders: fc.array(
      fc.constantFrom({ header: "x-sub", claim: "sub" }, { header: "x-b", claim: "a.b" }),
      {
        maxLength: 2,
      },
    ),
    forwardOriginalToken: fc.boolean(),
    timeout: duration,
    spaceDelimitedClaims: fc.array(fc.constantFrom("roles", "scope"), { maxLength: 2 }),
  },
  { requiredKeys: ["issuer"] },
);
const requestAuthentication = object(
  "RequestAuthentication",
  "security.istio.io/v1",
  some({
    selector: some({ matchLabels: some({ app: name, istio: fc.constant("ingressgateway") }) }),
    jwtRules: fc.array(token, { maxLength: 3 }),
  }),
);
const authorizationPolicy = object(
  "AuthorizationPolicy",
  "security.istio.io/v1",
  some({
    selector: fc.record({ matchLabels: fc.record({ app: name }) }),
    action: fc.constantFrom("ALLOW", "DENY", "AUDIT"),
    rules: fc.array(
      some({
        from: fc.array(
          fc.record({
            source: some({
              principals,
              notPrincipals: principals,
              requestPrincipals: texts("*", "https://a/b", "a/*", "*/b", "*b", "a*"),
              notNamespaces: attributes,
              ipBlocks: ranges,
              notRemoteIpBlocks: ranges,
            }),
          }),
          { minLength: 1, maxLength: 2 },
        ),
        to: fc.array(
          fc.record({
            operation: some({
              hosts: texts("a.com", "*.com", "A*"),
              notPorts: texts("80", "0", "65535"),
              methods: texts("GET", "*", "P*"),
              paths: texts("/a", "/a*", "*a", "/{*}/b", "/a/{**}"),
              notPaths: texts("/{**}", "/a%2Fb"),
            }),
          }),
          { minLength: 1, maxLength: 2 },
        ),
        when: fc.array(
          fc.oneof(
            fc.record({
              key: fc.constantFrom(
                "request.headers[X-A]",
                "request.auth.claims[a][b]",
                "source.namespace",
                "connection.sni",
              ),
              values: attributes,
            }),
            fc.record({ key: fc.constantFrom("source.ip", "remote.ip", "destination.ip"), notValues: ranges }),
          ),
          { maxLength: 2 },
        ),
      }),
      { maxLength: 3 },
    ),
  }),
);

const sidecar = object("Sidecar", "networking.istio.io/v1", randomSidecar);
const envoyFilter = object("EnvoyFilter", "networking.istio.io/v1alpha3", randomPatches);

/** The objects of one mesh, as a person or a tool would write them. */
export const randomMesh: fc.Arbitrary<readonly Json[]> = fc.uniqueArray(
  fc.oneof(
    { arbitrary: service, weight: 4 },
    { arbitrary: workloadEntry, weight: 3 },
    { arbitrary: serviceEntry, weight: 3 },
    { arbitrary: virtualService, weight: 4 },
    { arbitrary: destinationRule, weight: 3 },
    { arbitrary: gateway, weight: 2 },
    { arbitrary: sidecar, weight: 2 },
    { arbitrary: envoyFilter, weight: 2 },
    { arbitrary: peerAuthentication, weight: 1 },
    { arbitrary: authorizationPolicy, weight: 2 },
    { arbitrary: requestAuthentication, weight: 2 },
  ),
  { minLength: 8, maxLength: 25, selector: (o) => `${o.kind}/${JSON.stringify(o.metadata)}` },
);
