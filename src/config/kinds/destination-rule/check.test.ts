import assert from "node:assert/strict";
import { test } from "node:test";
import { parseObject } from "../parse-object.ts";

function problemsOf(spec: object): string[] {
  const { problems } = parseObject({
    apiVersion: "networking.istio.io/v1",
    kind: "DestinationRule",
    metadata: { name: "x", namespace: "ns" },
    spec,
  });
  return problems.map(({ severity, field }) => `${severity} ${field.replace("spec.trafficPolicy", "policy")}`);
}

const problemsOfPolicy = (trafficPolicy: object) => problemsOf({ host: "a", trafficPolicy });

test("a policy that says nothing is refused", () => {
  assert.deepEqual(problemsOfPolicy({}), ["error policy"]);
  assert.deepEqual(problemsOfPolicy({ portLevelSettings: [] }), ["error policy"]);
});

test("a destination rule with every common feature is fine", () => {
  assert.deepEqual(
    problemsOf({
      host: "*.example.com",
      trafficPolicy: {
        loadBalancer: {
          consistentHash: { httpCookie: { name: "user", ttl: "0s" }, maglev: { tableSize: 65537 } },
          localityLbSetting: { failover: [{ from: "us", to: "eu" }] },
          warmup: { duration: "30s", minimumPercent: 10, aggression: 1 },
        },
        connectionPool: { tcp: { maxConnections: 1, idleTimeout: "0s" }, http: { h2UpgradePolicy: "UPGRADE" } },
        outlierDetection: { consecutive5xxErrors: 3, interval: "1s", maxEjectionPercent: 100 },
        tls: { mode: "MUTUAL", clientCertificate: "/a", privateKey: "/b" },
        portLevelSettings: [{ port: { number: 80 }, tls: { mode: "DISABLE" } }],
      },
      subsets: [
        { name: "v1", labels: { version: "v1" } },
        { name: "v2", labels: { version: "v2" }, trafficPolicy: { loadBalancer: { simple: "RANDOM" } } },
      ],
      workloadSelector: { matchLabels: { app: "a" } },
      exportTo: ["."],
    }),
    [],
  );
});

test("host, subsets and visibility are checked", () => {
  assert.deepEqual(problemsOf({}), ["error spec.host"]);
  assert.deepEqual(problemsOf({ host: "a..b" }), ["error spec.host"]);
  assert.deepEqual(
    problemsOf({ host: "a", subsets: [{ name: "v1", labels: { "": "x" } }, { name: "v1" }, { name: "v_2" }, {}] }),
    [
      "error spec.subsets[3].name",
      'error spec.subsets[0].labels[""]',
      "error spec.subsets[1].name",
      "error spec.subsets[2].name",
    ],
  );
  assert.deepEqual(
    problemsOf({ host: "a", subsets: [{ name: "v1", labels: { "": "x" } }, { name: "v1" }, { name: "v_2" }] }),
    ['error spec.subsets[0].labels[""]', "error spec.subsets[1].name", "error spec.subsets[2].name"],
  );
  const selecting = { host: "a", workloadSelector: { matchLabels: { a: "*" } } };
  assert.deepEqual(problemsOf({ ...selecting, exportTo: ["ns", "b"] }), [
    "error spec.exportTo",
    "error spec.workloadSelector.matchLabels.a",
  ]);
  assert.deepEqual(problemsOf({ host: "a", workloadSelector: {} }), ["warning spec.workloadSelector.matchLabels"]);
});

test("traffic policies are checked", () => {
  const cases: [object, string[]][] = [
    [{}, ["error policy"]],
    [{ connectionPool: {} }, ["error policy.connectionPool"]],
    [{ connectionPool: { tcp: { maxConnections: -1 } } }, ["error policy.connectionPool.tcp.maxConnections"]],
    [{ connectionPool: { tcp: { connectTimeout: "1us" } } }, ["error policy.connectionPool.tcp.connectTimeout"]],
    [
      { connectionPool: { http: { h2UpgradePolicy: "UPGRADE", useClientProtocol: true } } },
      ["error policy.connectionPool.http.useClientProtocol"],
    ],
    [{ outlierDetection: { maxEjectionPercent: 101 } }, ["error policy.outlierDetection.maxEjectionPercent"]],
    [{ outlierDetection: { consecutiveErrors: 1 } }, ["warning policy.outlierDetection.consecutiveErrors"]],
    [
      { outlierDetection: { consecutiveLocalOriginFailures: 1 } },
      ["error policy.outlierDetection.consecutiveLocalOriginFailures"],
    ],
    [{ portLevelSettings: [{}] }, ["error policy.portLevelSettings[0].port", "error policy.portLevelSettings[0]"]],
    [
      { tunnel: { protocol: "GET", targetHost: "*", targetPort: 0 } },
      ["error policy.tunnel.protocol", "error policy.tunnel.targetHost", "error policy.tunnel.targetPort"],
    ],
    [{ tunnel: { targetHost: "a", targetPort: 1 }, proxyProtocol: { version: "V2" } }, ["error policy.proxyProtocol"]],
  ];
  for (const [policy, expected] of cases) assert.deepEqual(problemsOfPolicy(policy), expected, JSON.stringify(policy));
});

test("load balancers are checked", () => {
  const at = "policy.loadBalancer";
  const cases: [object, string[]][] = [
    [{ simple: "RANDOM", consistentHash: {} }, [`error ${at}.consistentHash`]],
    [{ consistentHash: { httpCookie: { ttl: "1s" } } }, [`error ${at}.consistentHash.httpCookie.name`]],
    [
      { consistentHash: { httpCookie: { name: "a", attributes: [{ name: "b" }, { name: "b" }] } } },
      [`error ${at}.consistentHash.httpCookie.attributes[1].name`],
    ],
    [
      { consistentHash: { minimumRingSize: 1, ringHash: {} } },
      [`warning ${at}.consistentHash.minimumRingSize`, `error ${at}.consistentHash.minimumRingSize`],
    ],
    [{ consistentHash: { maglev: { tableSize: 9 } } }, [`error ${at}.consistentHash.maglev.tableSize`]],
    [{ consistentHash: { maglev: {} } }, [`error ${at}.consistentHash.maglev.tableSize`]],
    [{ consistentHash: { maglev: { tableSize: 5_000_011 } } }, [`error ${at}.consistentHash.maglev.tableSize`]],
    [{ warmup: {} }, [`error ${at}.warmup.duration`]],
    [
      { warmup: { duration: "1s", minimumPercent: 101, aggression: 0.5 } },
      [`error ${at}.warmup.minimumPercent`, `error ${at}.warmup.aggression`],
    ],
  ];
  for (const [loadBalancer, expected] of cases) {
    assert.deepEqual(problemsOfPolicy({ loadBalancer }), expected, JSON.stringify(loadBalancer));
  }
});

test("locality settings are checked", () => {
  const at = "policy.loadBalancer.localityLbSetting";
  const outlierDetection = { consecutive5xxErrors: 1 };
  const cases: [object, string[]][] = [
    [{ distribute: [{ from: "a/b", to: { "a/b": 60, "a/c": 40 } }] }, []],
    [{ distribute: [{ from: "a", to: { b: 100 } }], failover: [{ from: "a", to: "b" }] }, [`error ${at}.failover`]],
    [{ distribute: [{ from: "a", to: { b: 0, c: 100 } }] }, [`error ${at}.distribute[0].to.b`]],
    [{ distribute: [{ from: "a", to: { "b/*": 50, "b/c": 50 } }] }, [`error ${at}.distribute[0].to`]],
    [{ distribute: [{ from: "a", to: { "b/c": 50, "b/*": 50 } }] }, [`error ${at}.distribute[0].to`]],
    [{ distribute: ["a/b/c", "a/b/*", "a/*", "*"].map((from) => ({ from, to: { b: 100 } })) }, []],
    [{ distribute: ["*", "a/b"].map((from) => ({ from, to: { b: 100 } })) }, [`error ${at}.distribute`]],
    [{ distribute: ["a/b", "a"].map((from) => ({ from, to: { b: 100 } })) }, [`error ${at}.distribute`]],
    [{ distribute: [{ from: "*/a", to: { b: 100 } }] }, [`error ${at}.distribute`]],
    [{ distribute: [{ from: "a//b", to: { b: 100 } }] }, [`error ${at}.distribute`]],
    [{ failover: [{ from: "a", to: "a" }] }, [`error ${at}.failover[0]`]],
    [{ failover: [{ from: "a/b", to: "c" }] }, [`error ${at}.failover[0]`]],
    [
      { failover: [{ from: "a", to: "b" }], failoverPriority: ["topology.kubernetes.io/region"] },
      [`error ${at}.failoverPriority`],
    ],
  ];
  for (const [localityLbSetting, expected] of cases) {
    const found = problemsOfPolicy({ outlierDetection, loadBalancer: { localityLbSetting } });
    assert.deepEqual(found, expected, JSON.stringify(localityLbSetting));
  }
  assert.deepEqual(problemsOfPolicy({ loadBalancer: { localityLbSetting: { failoverPriority: ["x"] } } }), [
    `warning ${at}`,
  ]);
});

test("TLS towards upstreams is checked", () => {
  const cases: [object, string[]][] = [
    [{ mode: "MUTUAL" }, ["error policy.tls.clientCertificate", "error policy.tls.privateKey"]],
    [{ mode: "SIMPLE", credentialName: "a", caCertificates: "/b" }, ["error policy.tls"]],
    [{ mode: "SIMPLE", insecureSkipVerify: true, subjectAltNames: ["a"] }, ["error policy.tls.insecureSkipVerify"]],
    [{ mode: "MUTUAL", insecureSkipVerify: true, credentialName: "a" }, []],
    [{ mode: "SIMPLE", credentialName: "configmap://other/a" }, ["error policy.tls.credentialName"]],
    [{ mode: "SIMPLE", credentialName: "configmap://ns/a" }, []],
  ];
  for (const [tls, expected] of cases) assert.deepEqual(problemsOfPolicy({ tls }), expected, JSON.stringify(tls));
});
