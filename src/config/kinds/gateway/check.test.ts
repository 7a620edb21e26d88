import assert from "node:assert/strict";
import { test } from "node:test";
import { parseObject } from "../parse-object.ts";

const SERVER = { port: { number: 80, name: "http", protocol: "HTTP" }, hosts: ["*"] };

function problemsOf(servers: readonly object[], metadata: object = { name: "web" }): string[] {
  const { problems } = parseObject({
    apiVersion: "networking.istio.io/v1",
    kind: "Gateway",
    metadata,
    spec: { servers },
  });
  return problems.map(({ severity, field }) => `${severity} ${field.replace("spec.servers[0]", "server")}`);
}

const problemsOfTls = (tls: object) =>
  problemsOf([{ ...SERVER, port: { number: 443, name: "https", protocol: "HTTPS" }, tls }]);

test("a gateway with every common feature is fine", () => {
  assert.deepEqual(
    problemsOf([
      { ...SERVER, tls: { httpsRedirect: true } },
      {
        port: { number: 443, name: "https", protocol: "HTTPS" },
        hosts: ["ns/*.example.com", "./a.com", "*/b.com", "10.0.0.1"],
        bind: "0.0.0.0",
        tls: { mode: "SIMPLE", credentialName: "cert", minProtocolVersion: "TLSV1_2", cipherSuites: ["AES128-SHA"] },
      },
      { port: { number: 15443, name: "tls", protocol: "tls" }, hosts: ["*.local"], tls: { mode: "AUTO_PASSTHROUGH" } },
      { port: { number: 3306, name: "mysql", protocol: "MySQL" }, hosts: ["*"] },
      { port: { number: 0, name: "socket", protocol: "HTTP" }, bind: "unix:///run/x", hosts: ["*"] },
    ]),
    [],
  );
});

test("servers, hosts, ports and binds are checked", () => {
  const cases: [object, string[]][] = [
    [{}, ["error server.port", "error server.hosts"]],
    [{ ...SERVER, hosts: [] }, ["error server.hosts"]],
    [{ ...SERVER, hosts: ["short"] }, ["error server.hosts[0]"]],
    [{ ...SERVER, hosts: ["::1"] }, ["error server.hosts[0]"]],
    [{ ...SERVER, hosts: ["a_b/c.com"] }, ["error server.hosts[0]"]],
    [{ ...SERVER, hosts: ["~/c.com"] }, ["error server.hosts[0]"]],
    [{ ...SERVER, hosts: ["*foo.com"] }, ["error server.hosts[0]"]],
    [{ ...SERVER, hosts: ["ns/"] }, ["error server.hosts[0]"]],
    [
      { ...SERVER, port: { number: 0, name: "", protocol: "SCTP" } },
      ["error server.port.protocol", "error server.port.number", "error server.port.name"],
    ],
    [{ ...SERVER, port: { ...SERVER.port, targetPort: 8080 } }, ["error server.port.targetPort"]],
    [{ ...SERVER, bind: "nowhere" }, ["error server.bind"]],
    [{ ...SERVER, bind: "unix://relative" }, ["error server.bind", "error server.port.number"]],
    [{ ...SERVER, tls: { mode: "SIMPLE", credentialName: "a" } }, ["error server.tls"]],
    [{ ...SERVER, port: { number: 1, name: "tcp", protocol: "TCP" }, tls: {} }, ["error server.tls"]],
    [{ ...SERVER, port: { number: 443, name: "https", protocol: "HTTPS" } }, ["error server.tls"]],
  ];
  for (const [server, expected] of cases) assert.deepEqual(problemsOf([server]), expected, JSON.stringify(server));
  assert.deepEqual(problemsOf([]), ["error spec.servers"]);
  assert.deepEqual(problemsOf([SERVER, SERVER]), ["error spec.servers[1].port.name"]);
  assert.deepEqual(problemsOf([SERVER], { name: "a.b" }), ["error metadata.name"]);
});

test("TLS of servers is checked", () => {
  const cases: [object, string[]][] = [
    [{ mode: "SIMPLE" }, ["error server.tls.serverCertificate", "error server.tls.privateKey"]],
    [{ mode: "MUTUAL", serverCertificate: "a", privateKey: "b" }, ["error server.tls.caCertificates"]],
    [{ mode: "SIMPLE", credentialName: "a", credentialNames: ["b"] }, ["error server.tls"]],
    [
      { mode: "SIMPLE", tlsCertificates: [{ serverCertificate: "a" }] },
      ["error server.tls.tlsCertificates[0].privateKey"],
    ],
    [{ mode: "SIMPLE", serverCertificate: "a", privateKey: "b", caCrl: "c" }, ["error server.tls.caCrl"]],
    [
      { mode: "ISTIO_MUTUAL", credentialName: "a", tlsCertificates: [{}] },
      ["error server.tls.credentialName", "error server.tls.tlsCertificates"],
    ],
    [{ mode: "PASSTHROUGH", serverCertificate: "a" }, ["warning server.tls"]],
    [{ mode: "PASSTHROUGH", credentialName: "a", caCrl: "b" }, ["warning server.tls", "error server.tls.caCrl"]],
    [{ mode: "PASSTHROUGH", minProtocolVersion: "TLSV1_0" }, ["warning server.tls.minProtocolVersion"]],
    [
      { mode: "PASSTHROUGH", cipherSuites: ["NONE", "AES128-SHA", "AES128-SHA", "!RC4"] },
      ["warning server.tls.cipherSuites[0]", "warning server.tls.cipherSuites[2]"],
    ],
    [{ mode: "PASSTHROUGH", httpsRedirect: true }, ["warning server.tls.httpsRedirect"]],
  ];
  for (const [tls, expected] of cases) assert.deepEqual(problemsOfTls(tls), expected, JSON.stringify(tls));
});
