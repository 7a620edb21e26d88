/** Random Sidecars over the names of random meshes. What they open themselves is on addresses that every machine has. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";

/** Envoy leaves sockets where they are when it ends. */
const SOCKETS = mkdtempSync(join(tmpdir(), "mizzen-sockets-"));
process.on("exit", () => rmSync(SOCKETS, { recursive: true, force: true }));

const NAMESPACES = ["default", "prod", "istio-system"];
const port = fc.constantFrom(80, 443, 3306, 8000, 8080, 9080);
const hosts = fc.uniqueArray(
  fc.oneof(
    fc.constantFrom("*/*", "./*", "~/*", "prod/*", "istio-system/*", "*/*.example.com", "default/*.svc.cluster.local"),
    fc
      .tuple(
        fc.constantFrom(".", "*", ...NAMESPACES),
        fc.constantFrom("web", "api", "db"),
        fc.constantFrom(...NAMESPACES),
      )
      .map(([from, name, namespace]) => `${from}/${name}.${namespace}.svc.cluster.local`),
  ),
  { minLength: 1, maxLength: 3 },
);

const place = fc.oneof(
  fc.record(
    { captureMode: fc.constantFrom("DEFAULT", "IPTABLES"), bind: fc.constantFrom("127.0.0.1", "0.0.0.0", "10.9.9.9") },
    { requiredKeys: [] },
  ),
  fc.record({ captureMode: fc.constant("NONE"), bind: fc.constant("127.0.0.1") }),
);

const portListener = fc
  .tuple(
    fc.record({
      port: fc.record({
        number: port,
        name: fc.constant("out"),
        protocol: fc.constantFrom("HTTP", "TCP", "TLS", "GRPC", "HTTP_PROXY", "MONGO"),
      }),
      hosts,
    }),
    place,
  )
  .map(([listener, where]) => ({ ...listener, ...where }));
const socketListener = fc.record({
  port: fc.record({ protocol: fc.constantFrom("HTTP", "TCP"), name: fc.constant("socket") }),
  bind: fc.constantFrom(`unix://${SOCKETS}/a.sock`, `unix://${SOCKETS}/b.sock`),
  hosts,
});
const egress = fc
  .tuple(
    fc.uniqueArray(fc.oneof(portListener, socketListener), {
      maxLength: 2,
      selector: (listener) => ("number" in listener.port ? listener.port.number : listener.bind),
    }),
    fc.option(fc.record({ hosts }), { nil: undefined }),
  )
  .map(([listeners, last]) => (last === undefined ? listeners : [...listeners, last]));

const ingressListener = fc
  .tuple(
    fc.record(
      {
        port: fc.record({
          number: port,
          name: fc.constant("in"),
          protocol: fc.constantFrom("HTTP", "TCP", "GRPC", "HTTPS", "MYSQL"),
        }),
        defaultEndpoint: fc.constantFrom(
          "127.0.0.1:8080",
          "0.0.0.0:8081",
          "[::1]:8080",
          "[::]:8081",
          "unix:///tmp/app",
        ),
        connectionPool: fc.constant({ http: { http1MaxPendingRequests: 7 } }),
      },
      { requiredKeys: ["port"] },
    ),
    place,
  )
  .map(([listener, where]) => ({ ...listener, ...where }));

/** The spec of a Sidecar. */
export const randomSidecar = fc.record(
  {
    workloadSelector: fc.record({ labels: fc.constantFrom({ app: "web" }, { app: "api" }, { version: "v1" }) }),
    egress,
    ingress: fc.uniqueArray(ingressListener, { maxLength: 2, selector: ({ port: { number } }) => number }),
    inboundConnectionPool: fc.constant({ tcp: { maxConnections: 9 } }),
    outboundTrafficPolicy: fc.constantFrom(
      {},
      { mode: "ALLOW_ANY" },
      { mode: "ALLOW_ANY", egressProxy: { host: "api.prod.svc.cluster.local", port: { number: 80 } } },
    ),
  },
  { requiredKeys: [] },
);
