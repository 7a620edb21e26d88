import assert from "node:assert/strict";
import { test } from "node:test";
import { parseObject } from "../kinds/parse-object.ts";

function problemsOf(kind: string, spec: object): string[] {
  const metadata = { name: "x", namespace: "ns" };
  const apiVersion = kind === "ProxyConfig" ? "networking.istio.io/v1beta1" : "networking.istio.io/v1";
  const { problems } = parseObject({ apiVersion, kind, metadata, spec });
  return problems.map(({ severity, field }) => `${severity} ${field}`);
}

const ofSidecar = (spec: object) => problemsOf("Sidecar", spec);
const ofGroup = (spec: object) => problemsOf("WorkloadGroup", { template: {}, ...spec });

const ALL = { hosts: ["*/*"] };
const PORT = { number: 80, protocol: "HTTP", name: "http" };

test("a sidecar with every field is fine", () => {
  const spec = {
    workloadSelector: { labels: { app: "a" } },
    ingress: [
      { port: PORT, defaultEndpoint: "127.0.0.1:8080", connectionPool: { http: { http2MaxRequests: 1 } } },
      { port: { number: 90 }, bind: "0.0.0.0", captureMode: "NONE", defaultEndpoint: "unix:///a/b" },
      {
        port: { number: 443, protocol: "HTTPS" },
        defaultEndpoint: "[::1]:1",
        tls: { mode: "SIMPLE", serverCertificate: "a", privateKey: "b" },
      },
    ],
    egress: [
      { port: { number: 0, protocol: "HTTP" }, bind: "unix:///a/b", hosts: ["./a.com", "~/*"] },
      { port: { number: 99, protocol: "MONGO" }, bind: "127.0.0.1", hosts: ["ns/*.a.com"] },
      ALL,
    ],
    inboundConnectionPool: { tcp: { maxConnections: 1 } },
    outboundTrafficPolicy: { mode: "ALLOW_ANY", egressProxy: { host: "a.com", port: { number: 80 } } },
  };
  assert.deepEqual(ofSidecar(spec), []);
});

test("sidecars are checked", () => {
  const ingress = (listener: object) => ({ ingress: [{ port: PORT, ...listener }] });
  const egress = (...listeners: object[]) => ({ egress: listeners.map((one) => ({ ...ALL, ...one })) });
  const tls = { mode: "SIMPLE", serverCertificate: "a", privateKey: "b" };
  const at = "error spec.ingress[0]";
  const cases: [object, string[]][] = [
    [{}, ["error spec"]],
    [{ ...egress({}), workloadSelector: {} }, ["warning spec.workloadSelector.labels"]],
    [ingress({ port: undefined }), [`${at}.port`]],
    [ingress({ port: { ...PORT, number: 0 } }), [`${at}.port.number`]],
    [ingress({ port: { ...PORT, protocol: "X", targetPort: 1 } }), [`${at}.port.protocol`, `${at}.port.targetPort`]],
    [{ ingress: [{ port: PORT }, { port: PORT }] }, ["error spec.ingress[1].port.number"]],
    [ingress({ bind: "host" }), [`${at}.bind`]],
    [ingress({ defaultEndpoint: "10.0.0.1:80" }), [`${at}.defaultEndpoint`]],
    [ingress({ defaultEndpoint: "127.0.0.1:http" }), [`${at}.defaultEndpoint`]],
    [ingress({ defaultEndpoint: "127.0.0.1:70000" }), [`${at}.defaultEndpoint`]],
    [ingress({ defaultEndpoint: "unix://a" }), [`${at}.defaultEndpoint`]],
    [ingress({ tls }), [`${at}.tls`]],
    [
      ingress({ port: { ...PORT, protocol: "TLS" }, tls: { ...tls, mode: "AUTO_PASSTHROUGH" } }),
      [`${at}.tls.mode`, "warning spec.ingress[0].tls"],
    ],
    [
      ingress({ port: { ...PORT, protocol: "TCP" }, connectionPool: { http: { maxRetries: 1 } } }),
      ["warning spec.ingress[0].connectionPool.http"],
    ],
    [egress({}, { port: PORT }), ["error spec.egress[0]"]],
    [egress({ hosts: [] }), ["error spec.egress[0].hosts"]],
    [egress({ hosts: ["a.com"] }), ["error spec.egress[0].hosts[0]"]],
    [egress({ hosts: ["a_b/a.com", "ns/*a.com", "ns/"] }), [0, 1, 2].map((i) => `error spec.egress[0].hosts[${i}]`)],
    [egress({ hosts: ["~/a", "./b"] }), [0, 1].map((i) => `error spec.egress[0].hosts[${i}]`)],
    [egress({ hosts: ["./a.com", "ns/a.com"] }), ["warning spec.egress[0].hosts[1]"]],
    [egress({ hosts: ["*/*", "ns/a.com"] }), ["warning spec.egress[0].hosts"]],
    [egress({ port: { number: 0, protocol: "HTTP" } }), ["error spec.egress[0].port.number"]],
    [
      egress({ port: { protocol: "HTTP" }, bind: "unix:///a", captureMode: "IPTABLES" }),
      ["error spec.egress[0].captureMode"],
    ],
    [egress({ port: PORT }, { port: PORT }), ["error spec.egress[1].port"]],
    [{ outboundTrafficPolicy: { egressProxy: { host: "a.com" } } }, ["error spec.outboundTrafficPolicy.egressProxy"]],
    [
      { outboundTrafficPolicy: { mode: "ALLOW_ANY", egressProxy: { host: "a.com" } } },
      ["error spec.outboundTrafficPolicy.egressProxy.port"],
    ],
  ];
  for (const [spec, expected] of cases) assert.deepEqual(ofSidecar(spec), expected, JSON.stringify(spec));
});

test("workload groups are checked", () => {
  const at = "error spec.probe";
  const cases: [object, string[]][] = [
    [{ metadata: { labels: { app: "a" } }, probe: { httpGet: { port: 80, scheme: "HTTPS" } } }, []],
    [{ probe: { exec: { command: ["true"] }, periodSeconds: 1 } }, []],
    [{ probe: { grpc: { port: 80 } } }, []],
    [{ template: undefined }, ["error spec.template"]],
    [{ metadata: { labels: { "": "a" } } }, ['error spec.metadata.labels[""]']],
    [{ probe: {} }, [at]],
    [{ probe: { tcpSocket: { port: 0 }, periodSeconds: -1 } }, [`${at}.periodSeconds`, `${at}.tcpSocket.port`]],
    [
      { probe: { httpGet: { port: 80, scheme: "FTP", httpHeaders: [{ name: "a_b" }, { name: "A-1" }] } } },
      [`${at}.httpGet.scheme`, `${at}.httpGet.httpHeaders[0].name`],
    ],
    [{ probe: { exec: { command: [] } } }, [`${at}.exec.command`]],
    [{ probe: { exec: { command: ["a"] }, tcpSocket: { port: 1 } } }, [`${at}.exec`]],
  ];
  for (const [spec, expected] of cases) assert.deepEqual(ofGroup(spec), expected, JSON.stringify(spec));
});

test("proxy configs are checked", () => {
  assert.deepEqual(
    problemsOf("ProxyConfig", { concurrency: 0, environmentVariables: { A: "b" }, image: { imageType: "debug" } }),
    [],
  );
  assert.deepEqual(problemsOf("ProxyConfig", { concurrency: -1 }), ["error spec.concurrency"]);
});
