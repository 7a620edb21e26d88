/** VirtualServices between workloads: what is matched, what is done with it, and how often. */
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { assertSettled } from "../../../support/envoy-settled.ts";
import { eventually } from "../../../support/fake-control-plane.ts";
import { meshUnavailable } from "../../../support/mesh-run.ts";
import { type FeaturesMesh, networking, upFeatures } from "./features-mesh.ts";

const ECHO = "http://echo";
const TO_ECHO = [{ destination: { host: "echo", port: { number: 80 } } }];

function routes(...http: readonly object[]): object {
  return networking("VirtualService", "echo", { hosts: ["echo"], http });
}

const SUBSETS = networking("DestinationRule", "echo", {
  host: "echo",
  subsets: [1, 2, 3].map((n) => ({ name: `v${n}`, labels: { version: `v${n}` } })),
});

function to(version: string, weight?: number): object {
  return { destination: { host: "echo", subset: version, port: { number: 80 } }, weight };
}

describe("VirtualServices in a mesh", { skip: meshUnavailable() }, () => {
  let on: FeaturesMesh;
  before(async () => {
    on = await upFeatures();
  });
  after(() => on[Symbol.asyncDispose]());
  afterEach(() => assertSettled(on.mesh, ["client", "echo-1", "istio-ingressgateway"]));

  test("requests are matched by everything that can be matched", async () => {
    const cases: readonly (readonly [match: object, hits: readonly string[][], misses: readonly string[][]])[] = [
      [{ uri: { exact: "/exact" } }, [["/exact"]], [["/exact/"], ["/EXACT"]]],
      [{ uri: { prefix: "/prefix" } }, [["/prefix"], ["/prefixed/x"]], [["/x/prefix"]]],
      [{ uri: { regex: "/re/[0-9]+" } }, [["/re/15"]], [["/re/15x"], ["/re/"]]],
      [{ uri: { exact: "/case" }, ignoreUriCase: true }, [["/CaSe"]], [["/cas"]]],
      [{ uri: { prefix: "/low" }, ignoreUriCase: true }, [["/LOWER"]], [["/lo"]]],
      [{ uri: { exact: "/m" }, method: { exact: "PUT" } }, [["/m", "-X", "PUT"]], [["/m"]]],
      [{ uri: { exact: "/s" }, scheme: { exact: "http" } }, [["/s"]], []],
      [{ uri: { exact: "/s2" }, scheme: { exact: "https" } }, [], [["/s2"]]],
      [{ uri: { exact: "/a" }, authority: { prefix: "echo.default" } }, [["/a", "-H", "host: echo.default"]], [["/a"]]],
      [{ headers: { a: { exact: "1" } } }, [["/", "-H", "a: 1"]], [["/", "-H", "a: 12"]]],
      [{ headers: { b: { prefix: "1" } } }, [["/", "-H", "b: 12"]], [["/", "-H", "b: 21"]]],
      [{ headers: { c: { regex: "1+" } } }, [["/", "-H", "c: 11"]], [["/", "-H", "c: 12"]]],
      [{ headers: { d: {} } }, [["/", "-H", "d: x"]], [["/"]]],
      [
        { uri: { exact: "/w" }, withoutHeaders: { e: { exact: "1" } } },
        [["/w"], ["/w", "-H", "e: 2"]],
        [["/w", "-H", "e: 1"]],
      ],
      [{ queryParams: { f: { exact: "1" } } }, [["/?f=1"]], [["/?f=2"]]],
      [{ queryParams: { g: { regex: "[ab]+" } } }, [["/?g=ab"]], [["/?g=abc"]]],
      [{ queryParams: { h: { prefix: "x" } } }, [["/?h=xy"]], [["/?h=yx"]]],
      [{ uri: { exact: "/p" }, port: 81 }, [[":81/p"]], [["/p"]]],
      [{ uri: { exact: "/l" }, sourceLabels: { app: "client" } }, [["/l"]], []],
      [{ uri: { exact: "/l2" }, sourceLabels: { app: "other" } }, [], [["/l2"]]],
      [{ uri: { exact: "/n" }, sourceNamespace: "default" }, [["/n"]], []],
      [{ uri: { exact: "/n2" }, sourceNamespace: "other" }, [], [["/n2"]]],
      [{ uri: { exact: "/g" }, gateways: ["mesh"] }, [["/g"]], []],
      [{ uri: { exact: "/g2" }, gateways: ["istio-system/none"] }, [], [["/g2"]]],
      [
        { uri: { exact: "/and" }, headers: { i: { exact: "1" } }, queryParams: { j: { exact: "2" } } },
        [["/and?j=2", "-H", "i: 1"]],
        [["/and?j=2"], ["/and", "-H", "i: 1"]],
      ],
    ];
    const matches = cases.map(([match], i) => ({ match: [match], directResponse: { status: 230 + i } }));
    await using _ = await on.with(routes(...matches, { route: TO_ECHO }));
    for (const [i, [match, hits, misses]] of cases.entries()) {
      const ask = ([path = "", ...args]: readonly string[]) => on.status(`${ECHO}${path}`, ...args);
      for (const hit of hits) assert.equal(await ask(hit), 230 + i, `${JSON.stringify(match)} and ${hit.join(" ")}`);
      for (const miss of misses) assert.equal(await ask(miss), 200, `not ${JSON.stringify(match)}: ${miss.join(" ")}`);
    }
  });

  test("redirects, answers, rewrites, header operations and CORS", async () => {
    const operations = { set: { "x-set": "route" }, add: { "x-add": "route" }, remove: ["x-gone"] };
    const atDestination = { set: { "x-at": "destination" }, remove: ["x-secret"] };
    await using _ = await on.with(
      routes(
        { match: [{ uri: { prefix: "/go" } }], redirect: { uri: "/new", authority: "else.where", redirectCode: 308 } },
        { match: [{ uri: { prefix: "/port" } }], redirect: { port: 8081, scheme: "https" } },
        {
          match: [{ uri: { prefix: "/derived" } }],
          redirect: { derivePort: "FROM_PROTOCOL_DEFAULT", scheme: "https" },
        },
        { match: [{ uri: { prefix: "/text" } }], directResponse: { status: 418, body: { string: "short and stout" } } },
        { match: [{ uri: { prefix: "/bytes" } }], directResponse: { status: 200, body: { bytes: "aGVsbG8=" } } },
        { match: [{ uri: { prefix: "/old" } }], rewrite: { uri: "/young", authority: "re.written" }, route: TO_ECHO },
        {
          match: [{ uri: { prefix: "/users" } }],
          rewrite: { uriRegexRewrite: { match: "/users/([^/]+)/(.*)", rewrite: "/\\2/of/\\1" } },
          route: TO_ECHO,
        },
        {
          match: [{ uri: { prefix: "/headers" } }],
          headers: { request: operations, response: operations },
          route: [{ ...TO_ECHO[0], headers: { request: atDestination, response: atDestination } }],
        },
        {
          match: [{ uri: { prefix: "/cors" } }],
          corsPolicy: {
            allowOrigins: [{ exact: "https://a.example" }, { regex: "https://.*\\.b\\.example" }],
            allowMethods: ["GET", "PATCH"],
            allowHeaders: ["x-one"],
            exposeHeaders: ["x-two"],
            maxAge: "60s",
            allowCredentials: true,
          },
          route: TO_ECHO,
        },
      ),
    );
    const call = (path: string, ...args: readonly string[]) => on.mesh.curl("client", `${ECHO}${path}`, args);
    const gone = await call("/go/on");
    assert.deepEqual([gone.status, gone.headers.location], [308, "http://else.where/new"]);
    assert.equal((await call("/port/x")).headers.location, "https://echo:8081/port/x");
    assert.equal((await call("/derived")).headers.location, "https://echo/derived");
    const text = await call("/text");
    assert.deepEqual([text.status, text.body], [418, "short and stout"]);
    assert.equal((await call("/bytes")).body, "hello");
    const rewritten = await on.echo(`${ECHO}/old/a?b=c`);
    assert.deepEqual([rewritten.url, rewritten.headers.host], ["/young/a?b=c", "re.written"]);
    assert.equal((await on.echo(`${ECHO}/users/7/books/1?q=1`)).url, "/books/1/of/7?q=1");
    const { headers, body } = await call("/headers", "-H", "x-gone: yes", "-H", "x-set: caller", "-H", "x-add: caller");
    const seen = (JSON.parse(body) as { headers: Record<string, string> }).headers;
    assert.equal(seen["x-set"], "route");
    assert.equal(seen["x-add"], "caller, route");
    assert.equal(seen["x-gone"], undefined);
    assert.equal(seen["x-at"], "destination");
    assert.deepEqual([headers["x-set"], headers["x-add"], headers["x-at"]], ["route", "route", "destination"]);
    assert.equal(headers["x-secret"], undefined);
    const preflight = (origin: string) =>
      call("/cors", "-X", "OPTIONS", "-H", `origin: ${origin}`, "-H", "access-control-request-method: PATCH");
    const allowed = (await preflight("https://a.example")).headers;
    assert.equal(allowed["access-control-allow-origin"], "https://a.example");
    assert.equal(allowed["access-control-allow-methods"], "GET,PATCH");
    assert.equal(allowed["access-control-allow-headers"], "x-one");
    assert.equal(allowed["access-control-max-age"], "60");
    assert.equal(allowed["access-control-allow-credentials"], "true");
    assert.equal(
      (await preflight("https://x.b.example")).headers["access-control-allow-origin"],
      "https://x.b.example",
    );
    assert.equal((await preflight("https://evil.example")).headers["access-control-allow-origin"], undefined);
    const simple = await call("/cors", "-H", "origin: https://a.example");
    assert.equal(simple.headers["access-control-expose-headers"], "x-two");
  });

  test("faults, timeouts and retries", async () => {
    const all = { value: 100 };
    await using _ = await on.with(
      SUBSETS,
      routes(
        {
          match: [{ uri: { prefix: "/late" } }],
          fault: { delay: { fixedDelay: "0.7s", percentage: all } },
          route: TO_ECHO,
        },
        {
          match: [{ uri: { prefix: "/half" } }],
          fault: { abort: { httpStatus: 555, percentage: { value: 50 } } },
          route: TO_ECHO,
        },
        {
          match: [{ uri: { prefix: "/grpc" } }],
          fault: { abort: { grpcStatus: "UNAVAILABLE", percentage: all } },
          route: TO_ECHO,
        },
        { match: [{ uri: { prefix: "/delay" } }], timeout: "300ms", route: TO_ECHO },
        {
          match: [{ uri: { prefix: "/flaky" } }],
          retries: { attempts: 3, retryOn: "5xx", backoff: "10ms" },
          route: [to("v1")],
        },
        {
          match: [{ uri: { prefix: "/slow" } }],
          retries: { attempts: 2, perTryTimeout: "3s", retryOn: "5xx" },
          route: [to("v1")],
        },
        {
          match: [{ uri: { prefix: "/status/429" } }],
          retries: { attempts: 1, retryOn: "429,retriable-4xx" },
          route: [to("v1")],
        },
        {
          match: [{ uri: { prefix: "/fail" } }],
          retries: { attempts: 2, retryOn: "503", retryIgnorePreviousHosts: true },
          route: TO_ECHO,
        },
        { match: [{ uri: { prefix: "/status" } }], retries: { attempts: 0 }, route: [to("v1")] },
      ),
    );
    /** How often the app wrote that, once it did so as often as it should. */
    const logged = async (text: string, least: number) => {
      let count = 0;
      await eventually(`${least} of ${text}`, async () => {
        count = (await on.mesh.logs("echo-1")).split(text).length - 1;
        return count >= least;
      });
      return count;
    };
    const started = performance.now();
    assert.equal(await on.status(`${ECHO}/late`), 200);
    assert.ok(performance.now() - started > 690, "the delay was too short");
    const half = (await on.pods(400, `${ECHO}/half`)).get("555") ?? 0;
    assert.ok(half > 140 && half < 260, `${half} of 400 were aborted`);
    const grpc = await on.mesh.curl("client", `${ECHO}/grpc`, ["-H", "content-type: application/grpc", "-X", "POST"]);
    assert.deepEqual([grpc.status, grpc.headers["grpc-status"]], [200, "14"]);
    assert.equal(await on.status(`${ECHO}/delay/3000`), 504);
    assert.equal((await on.echo(`${ECHO}/flaky/a/3`)).headers["x-envoy-attempt-count"], "4");
    assert.equal(await on.status(`${ECHO}/flaky/b/9`), 503);
    assert.equal((await on.echo(`${ECHO}/slow/a/15000`)).headers["x-envoy-attempt-count"], "2");
    assert.equal(await on.status(`${ECHO}/status/429`), 429);
    assert.equal(await logged("GET /status/429", 2), 2);
    const spread = await on.pods(60, `${ECHO}/fail/echo-2/503`);
    assert.equal((spread.get("echo-1") ?? 0) + (spread.get("echo-3") ?? 0), 60, "no try went to the host that failed");
    assert.equal(await on.status(`${ECHO}/status/503`), 503);
    assert.equal(await logged("GET /status/503", 1), 1);
  });

  test("weights and mirrors are counted, delegates lead on", async () => {
    await using _ = await on.with(
      SUBSETS,
      networking("VirtualService", "echo", {
        hosts: ["echo"],
        http: [
          { match: [{ uri: { prefix: "/split" } }], route: [to("v1", 70), to("v2", 20), to("v3", 10)] },
          {
            match: [{ uri: { prefix: "/mirrored" } }],
            route: [to("v1")],
            mirrors: [
              { destination: { host: "echo", subset: "v2", port: { number: 80 } }, percentage: { value: 100 } },
              { destination: { host: "echo", subset: "v3", port: { number: 80 } }, percentage: { value: 30 } },
            ],
          },
          {
            match: [{ uri: { prefix: "/old-mirror" } }],
            route: [to("v1")],
            mirror: { host: "echo", subset: "v2", port: { number: 80 } },
          },
          { match: [{ uri: { prefix: "/team" } }], delegate: { name: "team", namespace: "default" } },
          { route: [to("v1")] },
        ],
      }),
      networking("VirtualService", "team", {
        http: [
          { match: [{ uri: { prefix: "/team/a" } }], rewrite: { uri: "/a" }, route: [to("v2")] },
          { route: [to("v3")] },
        ],
      }),
    );
    const split = await on.pods(1000, `${ECHO}/split`);
    const near = (pod: string, share: number) => Math.abs((split.get(pod) ?? 0) - share) < 75;
    assert.ok(near("echo-1", 700) && near("echo-2", 200) && near("echo-3", 100), JSON.stringify([...split]));
    assert.deepEqual([...(await on.pods(200, `${ECHO}/mirrored`))], [["echo-1", 200]]);
    assert.deepEqual([...(await on.pods(5, `${ECHO}/old-mirror`))], [["echo-1", 5]]);
    const got = async (pod: string, path: string) =>
      (await on.mesh.logs(pod)).split("\n").filter((line) => line.includes(`GET ${path}`));
    const hasCopies = async (path: string, count: number) => (await got("echo-2", path)).length === count;
    await eventually("5 copies", () => hasCopies("/old-mirror", 5));
    await eventually("200 copies", () => hasCopies("/mirrored", 200));
    const copies = await got("echo-2", "/mirrored");
    assert.match(copies[0] ?? "", /for echo$/);
    const some = (await got("echo-3", "/mirrored")).length;
    assert.ok(some > 30 && some < 95, `${some} of 200 were copied to v3`);
    assert.deepEqual([...(await on.pods(5, `${ECHO}/team/a`))], [["echo-2", 5]]);
    assert.equal((await on.echo(`${ECHO}/team/a/b`)).url, "/a/b");
    assert.deepEqual([...(await on.pods(5, `${ECHO}/team/b`))], [["echo-3", 5]]);
    assert.deepEqual([...(await on.pods(5, `${ECHO}/none`))], [["echo-1", 5]]);
  });

  test("TCP routes are split by weight and port", async () => {
    await using _ = await on.with(
      SUBSETS,
      networking("VirtualService", "echo", {
        hosts: ["echo"],
        tcp: [
          {
            match: [{ port: 9000, sourceLabels: { app: "client" } }],
            route: [
              { destination: { host: "echo", subset: "v1", port: { number: 9000 } }, weight: 50 },
              { destination: { host: "echo", subset: "v3", port: { number: 9000 } }, weight: 50 },
            ],
          },
        ],
      }),
    );
    const script = "for i in $(seq 40); do echo hi | curl -sS -m 5 telnet://echo:9000 || true; done";
    const { stdout, stderr } = await on.mesh.exec("client", ["sh", "-c", script]);
    const count = (pod: string) => stdout.split("\n").filter((line) => line === `${pod} got hi`).length;
    assert.equal(count("echo-1") + count("echo-3"), 40, stdout + stderr);
    assert.ok(count("echo-1") > 5 && count("echo-3") > 5, stdout);
  });

  test("TLS routes are chosen by server name, source and port, and split by weight", async () => {
    const addressOf = async (name: string) => (await (await on.mesh.workload(name)).status()).address;
    const ports = [{ number: 443, name: "tls", protocol: "TLS", targetPort: 8443 }];
    const entry = (host: string, address: string) =>
      networking("ServiceEntry", host.replaceAll(".", "-"), {
        hosts: [host],
        ports,
        resolution: "STATIC",
        endpoints: [{ address }],
      });
    const [outside, echo3] = [await addressOf("outside"), await addressOf("echo-3")];
    const toHost = (host: string, weight?: number) => ({ destination: { host, port: { number: 443 } }, weight });
    const [north, south, split] = ["north.example.com", "south.example.com", "split.example.com"] as const;
    await using _ = await on.with(
      entry(north, outside),
      entry(south, echo3),
      entry(split, outside),
      entry("*.any.example.com", outside),
      networking("VirtualService", "tls", {
        hosts: [split, "*.any.example.com"],
        tls: [
          { match: [{ sniHosts: [split], sourceLabels: { app: "nobody" } }], route: [toHost(south)] },
          { match: [{ sniHosts: [split], port: 443 }], route: [toHost(north, 50), toHost(south, 50)] },
          { match: [{ sniHosts: ["a.any.example.com"] }], route: [toHost(south)] },
        ],
      }),
    );
    const answers = (host: string, calls: number) =>
      on.pods(calls, `https://${host}/`, "-k", "-H", "connection: close", "--resolve", `${host}:443:${outside}`);
    assert.deepEqual([...(await answers("a.any.example.com", 5))], [["echo-3", 5]]);
    // As in Istio, what no TLS route matches is passed through to the address that was called, where nobody listens on 443.
    assert.deepEqual([...(await answers("b.any.example.com", 5))], [["000", 5]]);
    const halves = await answers(split, 40);
    const [first = 0, second = 0] = [halves.get("outside"), halves.get("echo-3")];
    assert.equal(first + second, 40);
    assert.ok(first > 5 && second > 5, `${first} and ${second}`);
  });
});
