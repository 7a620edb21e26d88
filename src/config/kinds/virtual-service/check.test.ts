import assert from "node:assert/strict";
import { test } from "node:test";
import { parseObject } from "../parse-object.ts";

const TO_A = { destination: { host: "a" } };
const ROUTE = { route: [TO_A] };

function problemsOf(spec: object): string[] {
  const { problems } = parseObject({
    apiVersion: "networking.istio.io/v1",
    kind: "VirtualService",
    metadata: { name: "x", namespace: "ns" },
    spec,
  });
  return problems.map(({ severity, field }) => `${severity} ${field}`);
}

function problemsOfRoute(route: object): string[] {
  return problemsOf({ hosts: ["a"], http: [route] });
}

test("a virtual service with every common feature is fine", () => {
  assert.deepEqual(
    problemsOf({
      hosts: ["reviews", "*.example.com", "10.0.0.1"],
      gateways: ["mesh", "istio-system/web"],
      exportTo: ["."],
      http: [
        {
          match: [
            {
              uri: { prefix: "" },
              method: { exact: "GET" },
              headers: { "end-user": { regex: "^(.*?;)?(user=jason)(;.*)?$" }, ":path": { exact: "/" } },
              withoutHeaders: { "x-internal": { regex: "*" } },
              sourceLabels: { app: "productpage" },
              port: 9080,
            },
          ],
          route: [
            { ...TO_A, weight: 80, headers: { request: { set: { host: "b", x: "%REQ(Y)% 100%%" } } } },
            { destination: { host: "a", subset: "v2", port: { number: 80 } }, weight: 20 },
          ],
          timeout: "5s",
          retries: { attempts: 3, perTryTimeout: "2s", retryOn: "5xx,reset,503" },
          fault: { delay: { fixedDelay: "5s", percentage: { value: 0.1 } }, abort: { httpStatus: 500 } },
          mirror: { host: "b" },
          mirrorPercentage: { value: 50 },
          rewrite: { uriRegexRewrite: { match: "^/a/(.*)", rewrite: "/\\1" } },
          corsPolicy: { allowOrigins: [{ exact: "*" }], allowMethods: ["GET"], allowHeaders: ["*"], maxAge: "24h" },
        },
        { match: [{ uri: { exact: "/old" } }], redirect: { uri: "/new", redirectCode: 301 } },
        { directResponse: { status: 503, body: { string: "no" } } },
      ],
    }),
    [],
  );
});

test("hosts are checked for the place where they count", () => {
  assert.deepEqual(problemsOf({ hosts: ["*"], http: [ROUTE] }), ["error spec.hosts[0]"]);
  assert.deepEqual(problemsOf({ hosts: ["*"], gateways: ["web"], http: [ROUTE] }), []);
  assert.deepEqual(problemsOf({ hosts: ["a b"], http: [ROUTE] }), ["error spec.hosts[0]"]);
  assert.deepEqual(problemsOf({ hosts: ["a.com", "*.b.com", "x.b.com"], http: [ROUTE] }), ["error spec.hosts[2]"]);
  assert.deepEqual(problemsOf({ hosts: ["a"], gateways: ["a b", "ns/"], http: [ROUTE] }), [
    "error spec.gateways[0]",
    "error spec.gateways[1]",
  ]);
  assert.deepEqual(problemsOf({ hosts: ["a"], gateways: ["web.ns.svc"], http: [ROUTE] }), ["warning spec.gateways[0]"]);
});

test("there has to be a route, and each route has to do one thing", () => {
  assert.deepEqual(problemsOf({ hosts: ["a"] }), ["error spec"]);
  assert.deepEqual(problemsOfRoute({}), ["error spec.http[0]"]);
  assert.deepEqual(problemsOfRoute({ ...ROUTE, redirect: { uri: "/" }, fault: { abort: { httpStatus: 500 } } }), [
    "error spec.http[0].route",
    "error spec.http[0].fault",
  ]);
  assert.deepEqual(problemsOfRoute({ redirect: { uri: "/" }, directResponse: { status: 200 } }), [
    "error spec.http[0].directResponse",
  ]);
  assert.deepEqual(problemsOfRoute({ ...ROUTE, mirror: { host: "b" }, mirrors: [TO_A] }), [
    "error spec.http[0].mirrors",
  ]);
});

test("a delegate has no hosts, gateways, TLS or TCP, and does not delegate", () => {
  assert.deepEqual(problemsOf({ http: [ROUTE] }), []);
  assert.deepEqual(problemsOf({ gateways: ["web"], http: [ROUTE], tcp: [ROUTE] }), [
    "error spec.gateways",
    "error spec.tcp",
  ]);
  assert.deepEqual(problemsOf({ http: [{ ...ROUTE, delegate: { name: "b" } }] }), ["error spec.http[0].delegate"]);
  assert.deepEqual(problemsOfRoute({ ...ROUTE, delegate: { name: "b" } }), ["error spec.http[0].route"]);
});

test("destinations are checked with their weights", () => {
  assert.deepEqual(problemsOfRoute({ route: [{}] }), ["error spec.http[0].route[0].destination"]);
  assert.deepEqual(problemsOfRoute({ route: [{ destination: { host: "*", subset: "v.1", port: {} }, weight: -1 }] }), [
    "error spec.http[0].route[0].destination.host",
    "error spec.http[0].route[0].destination.subset",
    "error spec.http[0].route[0].destination.port.number",
    "error spec.http[0].route[0].weight",
  ]);
  assert.deepEqual(problemsOfRoute({ route: [TO_A, TO_A] }), ["error spec.http[0].route"]);
});

test("regular expressions are those of RE2", () => {
  for (const regex of ["(?=a)b", "(a)\\1", "[", "a".repeat(1025), ""]) {
    const route = { ...ROUTE, match: [{ uri: { regex } }] };
    assert.deepEqual(problemsOfRoute(route), ["error spec.http[0].match[0].uri.regex"], regex);
  }
});

test("a regular expression that would take a backtracking engine for ever is no trouble", () => {
  assert.deepEqual(problemsOfRoute({ ...ROUTE, match: [{ uri: { regex: "^(([a-z])+.)+[A-Z]([a-z])+$" } }] }), []);
});

test("matches are checked", () => {
  const match = {
    headers: { "a b": { exact: "x" }, c: { prefix: "" } },
    withoutHeaders: { d: { regex: "[" } },
    queryParams: { e: { prefix: "" } },
    scheme: { prefix: "" },
    port: 70000,
    sourceLabels: { "a/b/c": "x", d: "-" },
    sourceNamespace: "a.b",
    gateways: ["a/b/c"],
  };
  assert.deepEqual(problemsOfRoute({ ...ROUTE, match: [match] }), [
    'error spec.http[0].match[0].headers["a b"]',
    "error spec.http[0].match[0].headers.c.prefix",
    "error spec.http[0].match[0].withoutHeaders.d.regex",
    "error spec.http[0].match[0].queryParams.e.prefix",
    "error spec.http[0].match[0].scheme.prefix",
    "error spec.http[0].match[0].port",
    'error spec.http[0].match[0].sourceLabels["a/b/c"]',
    "error spec.http[0].match[0].sourceLabels.d",
    "error spec.http[0].match[0].gateways[0]",
    "error spec.http[0].match[0].sourceNamespace",
  ]);
});

test("claims of a token can be matched on gateways only", () => {
  const http = [{ ...ROUTE, match: [{ headers: { "@request.auth.claims.sub": { exact: "x" } } }] }];
  assert.deepEqual(problemsOf({ hosts: ["a"], http }), ["error spec.http[0].match[0]"]);
  assert.deepEqual(problemsOf({ hosts: ["a"], gateways: ["web"], http }), []);
});

test("headers that are changed are checked by name and value", () => {
  const headers = {
    request: { set: { ":path": "x", authority: "100%" }, add: { "": "\u0007" }, remove: ["Host"] },
    response: { set: { host: "x" }, remove: [":status"] },
  };
  assert.deepEqual(problemsOfRoute({ ...ROUTE, headers }), [
    'error spec.http[0].headers.request.set[":path"]',
    "error spec.http[0].headers.request.set.authority",
    'error spec.http[0].headers.request.add[""]',
    'error spec.http[0].headers.request.add[""]',
    "error spec.http[0].headers.request.remove[0]",
    "error spec.http[0].headers.response.set.host",
    "error spec.http[0].headers.response.remove[0]",
  ]);
});

test("values of headers may hold variables with arguments", () => {
  for (const value of ["%START_TIME(%s)%", '%UPSTREAM_METADATA(["a", "b\\"c"])%', "a %REQ(X?Y) % b", "%%"]) {
    assert.deepEqual(problemsOfRoute({ ...ROUTE, headers: { request: { set: { a: value } } } }), [], value);
  }
  for (const value of ["%", "%%%", "%A(%", "%A()%", '%A(["a" "b"])%', "%A(b)c%", "%A"]) {
    assert.equal(problemsOfRoute({ ...ROUTE, headers: { request: { set: { a: value } } } }).length, 1, value);
  }
});

test("the authority is set at most once", () => {
  const route = { ...ROUTE, rewrite: { authority: "b" }, headers: { request: { set: { Host: "c" } } } };
  assert.deepEqual(problemsOfRoute(route), ["error spec.http[0].headers.request"]);
});

test("what a route does to requests is checked", () => {
  const cases: [object, string[]][] = [
    [{ fault: {} }, ["error spec.http[0].fault"]],
    [{ fault: { abort: {} } }, ["warning spec.http[0].fault.abort"]],
    [{ fault: { abort: { httpStatus: 99 } } }, ["error spec.http[0].fault.abort.httpStatus"]],
    [{ fault: { abort: { grpcStatus: "BAD" } } }, ["error spec.http[0].fault.abort.grpcStatus"]],
    [{ fault: { abort: { http2Error: "x" } } }, ["error spec.http[0].fault.abort.http2Error"]],
    [{ fault: { delay: { fixedDelay: "0s" } } }, ["error spec.http[0].fault.delay.fixedDelay"]],
    [{ fault: { delay: { exponentialDelay: "1s" } } }, ["error spec.http[0].fault.delay.exponentialDelay"]],
    [
      { fault: { delay: { fixedDelay: "1s", percentage: { value: 101 } } } },
      ["error spec.http[0].fault.delay.percentage.value"],
    ],
    [{ timeout: "100us" }, ["error spec.http[0].timeout"]],
    [{ retries: { attempts: -1 } }, ["error spec.http[0].retries.attempts"]],
    [{ retries: { retryOn: "5xx" } }, ["error spec.http[0].retries.attempts"]],
    [
      { retries: { attempts: 1, retryOn: "5xx,often,999" } },
      ["error spec.http[0].retries.retryOn", "error spec.http[0].retries.retryOn"],
    ],
    [{ rewrite: {} }, ["error spec.http[0].rewrite"]],
    [
      { rewrite: { uri: "/", uriRegexRewrite: { match: "a" } } },
      ["error spec.http[0].rewrite", "error spec.http[0].rewrite.uriRegexRewrite"],
    ],
    [
      { rewrite: { uriRegexRewrite: { match: "[", rewrite: "x" } } },
      ["error spec.http[0].rewrite.uriRegexRewrite.match"],
    ],
    [{ mirrorPercentage: { value: 101 }, mirror: { host: "b" } }, ["error spec.http[0].mirrorPercentage.value"]],
    [{ mirrorPercent: 10, mirror: { host: "b" } }, ["warning spec.http[0].mirrorPercent"]],
    [{ corsPolicy: { allowOrigins: [{}] } }, ["error spec.http[0].corsPolicy.allowOrigins[0]"]],
    [{ corsPolicy: { allowMethods: ["get"] } }, ["error spec.http[0].corsPolicy.allowMethods[0]"]],
    [{ corsPolicy: { exposeHeaders: ["a b"] } }, ["error spec.http[0].corsPolicy.exposeHeaders[0]"]],
    [{ corsPolicy: { maxAge: "1500ms" } }, ["error spec.http[0].corsPolicy.maxAge"]],
  ];
  for (const [change, expected] of cases) {
    assert.deepEqual(problemsOfRoute({ ...ROUTE, ...change }), expected, JSON.stringify(change));
  }
});

test("redirects and direct responses are checked", () => {
  const cases: [object, string[]][] = [
    [{ redirect: {} }, ["error spec.http[0].redirect"]],
    [{ redirect: { uri: "/", redirectCode: 200 } }, ["error spec.http[0].redirect.redirectCode"]],
    [{ redirect: { scheme: "ftp" } }, ["error spec.http[0].redirect.scheme"]],
    [{ redirect: { port: 70000 } }, ["error spec.http[0].redirect.port"]],
    [{ redirect: { port: 80, derivePort: "FROM_REQUEST_PORT" } }, ["error spec.http[0].redirect.derivePort"]],
    [{ directResponse: {} }, ["error spec.http[0].directResponse.status"]],
    [{ directResponse: { status: 100 } }, ["error spec.http[0].directResponse.status"]],
    [
      { directResponse: { status: 200, body: { string: "x".repeat(101 * 1024) } } },
      ["warning spec.http[0].directResponse.body"],
    ],
    [
      { directResponse: { status: 200, body: { bytes: Buffer.alloc(2 ** 20 + 1).toString("base64") } } },
      ["error spec.http[0].directResponse.body"],
    ],
  ];
  for (const [route, expected] of cases) assert.deepEqual(problemsOfRoute(route), expected, JSON.stringify(expected));
});

test("TLS and TCP routes are checked", () => {
  assert.deepEqual(
    problemsOf({ hosts: ["a.com"], tls: [{}], tcp: [{}] }),
    ["error spec.tls[0].match", "error spec.tls[0].route", "error spec.tcp[0].route", "warning spec.tcp[0]"].slice(
      0,
      3,
    ),
  );
  const tls = [{ match: [{ sniHosts: ["b.com", "1.2.3.4"], destinationSubnets: ["10.0.0.0/33"] }], route: [TO_A] }];
  assert.deepEqual(problemsOf({ hosts: ["a.com"], tls }), [
    "error spec.tls[0].match[0].sniHosts[0]",
    "warning spec.tls[0].match[0].sniHosts[1]",
    "error spec.tls[0].match[0].destinationSubnets[0]",
  ]);
  const generated = [{ match: [{ sniHosts: ["outbound_.80_._.a.b.c"] }], route: [TO_A] }];
  assert.deepEqual(problemsOf({ hosts: ["outbound_.80_._.a.b.c"], gateways: ["web"], tls: generated }), []);
});

test("routes and matches that are never reached are warnings", () => {
  const a = { ...ROUTE, match: [{ uri: { prefix: "/a" } }] };
  assert.deepEqual(problemsOf({ hosts: ["a"], http: [ROUTE, a] }), ["warning spec.http[1]"]);
  assert.deepEqual(problemsOf({ hosts: ["a"], http: [a, a] }), [
    "warning spec.http[1].match[0]",
    "warning spec.http[1]",
  ]);
  const same = { name: "b", uri: { prefix: "/a" }, headers: {}, sourceLabels: {}, port: 0, ignoreUriCase: false };
  assert.deepEqual(problemsOf({ hosts: ["a"], http: [a, { ...ROUTE, match: [{ ...same, gateways: [] }] }] }), [
    "warning spec.http[1].match[0]",
    "warning spec.http[1]",
  ]);
  const deeper = { ...ROUTE, match: [{ uri: { prefix: "/a/b" } }] };
  assert.deepEqual(problemsOf({ hosts: ["a"], http: [a, deeper] }), ["warning spec.http[1].match[0]"]);
  const stricter = { ...ROUTE, match: [{ uri: { prefix: "/a" }, headers: { x: { exact: "1" } } }] };
  assert.deepEqual(problemsOf({ hosts: ["a"], http: [stricter, deeper] }), []);
});

test("a match that is never reached is told once, however many cover it", () => {
  const nested = Array.from({ length: 400 }, (_, i) => ({
    ...ROUTE,
    match: [{ uri: { prefix: `/${"a".repeat(i)}` } }],
  }));
  const problems = problemsOf({ hosts: ["a"], http: nested });
  assert.equal(problems.length, 399);
  assert.equal(problems.at(-1), "warning spec.http[399].match[0]");
  const ports = Array.from({ length: 400 }, (_, i) => ({
    uri: { prefix: i % 2 === 0 ? "/" : "/a" },
    port: (i >> 1) + 1,
  }));
  assert.equal(problemsOf({ hosts: ["a"], http: [{ ...ROUTE, match: ports }] }).length, 200);
});

test("hosts that overlap are told at the later one, whichever of them is the wider", () => {
  const hosts = ["a.example.com", "x.org", "*.example.com", "*.b.example.com", "x.org"];
  assert.deepEqual(
    problemsOf({ hosts, gateways: ["web"], http: [ROUTE] }),
    [2, 3, 4].map((i) => `error spec.hosts[${i}]`),
  );
});

test("tens of thousands of hosts are no trouble", () => {
  const hosts = Array.from({ length: 40_000 }, (_, i) => `*.h${i}.example.com`);
  const started = performance.now();
  assert.deepEqual(problemsOf({ hosts, http: [ROUTE] }), []);
  assert.ok(performance.now() - started < 5_000); // comparing each with each takes far longer
});

test("exportTo is checked", () => {
  const cases: [string[], string[]][] = [
    [["*"], []],
    [["a", "b"], []],
    [["*", "a"], ["error spec.exportTo"]],
    [[".", "ns"], ["error spec.exportTo[1]"]],
    [["~"], ["error spec.exportTo[0]"]],
    [["a_b"], ["error spec.exportTo[0]"]],
  ];
  for (const [exportTo, expected] of cases) {
    assert.deepEqual(problemsOf({ hosts: ["a"], http: [ROUTE], exportTo }), expected, exportTo.join());
  }
});

test("annotations that users must not set are refused", () => {
  const { object, problems } = parseObject({
    apiVersion: "networking.istio.io/v1",
    kind: "VirtualService",
    metadata: { name: "x", annotations: { "internal.istio.io/parents": "y", "istio.io/dry-run": "true" } },
    spec: { hosts: ["a"], http: [ROUTE] },
  });
  assert.equal(object, undefined);
  assert.equal(problems.length, 2);
});
