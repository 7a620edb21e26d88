/** DestinationRules between workloads: who is asked, how many at once, and who is not asked any more. */
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { assertSettled } from "../../../support/envoy-settled.ts";
import { eventually } from "../../../support/fake-control-plane.ts";
import { meshUnavailable } from "../../../support/mesh-run.ts";
import { type FeaturesMesh, networking, upFeatures } from "./features-mesh.ts";

const ECHO = "http://echo";
const NO_RETRIES = networking("VirtualService", "echo", {
  hosts: ["echo"],
  http: [{ route: [{ destination: { host: "echo" } }], retries: { attempts: 0 } }],
});
/** Without it no locality is preferred. Nobody is ejected by it here. */
const PATIENT = { consecutive5xxErrors: 1000 };
const IMPATIENT = { consecutive5xxErrors: 2, interval: "1s", baseEjectionTime: "60s", maxEjectionPercent: 100 };

function rule(trafficPolicy: object): object {
  return networking("DestinationRule", "echo", { host: "echo", trafficPolicy });
}

describe("DestinationRules in a mesh", { skip: meshUnavailable() }, () => {
  let on: FeaturesMesh;
  before(async () => {
    on = await upFeatures();
  });
  after(() => on[Symbol.asyncDispose]());
  afterEach(() => assertSettled(on.mesh, ["client", "echo-1"]));

  test("hosts that fail are ejected and counted", async () => {
    const localityLbSetting = { enabled: false };
    await using _ = await on.with(
      NO_RETRIES,
      rule({ outlierDetection: IMPATIENT, loadBalancer: { localityLbSetting } }),
    );
    let failed = 0;
    // A few at a time: that a host is ejected is told to those who choose after the answer that did it.
    for (let round = 0; round < 10; round++) failed += (await on.pods(3, `${ECHO}/fail/echo-2/500`)).get("500") ?? 0;
    assert.ok(failed < 5, `${failed} of 30 calls failed; without the rule 5 would`);
    const later = await on.pods(60, `${ECHO}/fail/echo-2/500`);
    assert.equal(later.get("500") ?? 0, 0);
    assert.ok((later.get("echo-1") ?? 0) > 10 && (later.get("echo-3") ?? 0) > 10, JSON.stringify([...later]));
    const stats = await on.mesh.exec("client", [
      "curl",
      "-s",
      "localhost:15000/stats?filter=outlier_detection.ejections_active",
    ]);
    assert.match(stats.stdout, /outbound\|80\|\|echo\.default\.svc\.cluster\.local.*ejections_active: 1/);
  });

  /** Lets a pod fail until it is not asked any more: Envoy's balancers hear of the second ejection within a second a second later. */
  async function eject(pod: string): Promise<void> {
    const isAsked = async () => (await on.pods(6, `${ECHO}/fail/${pod}/500`)).has("500");
    await eventually(`${pod} is ejected`, async () => !(await isAsked()));
  }

  test("localities are preferred, failed over and distributed", async () => {
    const withLocality = (localityLbSetting: object, outlierDetection: object = PATIENT) =>
      on.with(NO_RETRIES, rule({ outlierDetection, loadBalancer: { simple: "ROUND_ROBIN", localityLbSetting } }));
    {
      await using _ = await withLocality({ enabled: true });
      assert.deepEqual([...(await on.pods(30, ECHO))], [["echo-1", 30]], "its own zone");
    }
    {
      await using _ = await withLocality({ enabled: true }, IMPATIENT);
      await eject("echo-1");
      assert.deepEqual([...(await on.pods(30, ECHO))], [["echo-2", 30]], "the next zone");
      await eject("echo-2");
      assert.deepEqual([...(await on.pods(30, ECHO))], [["echo-3", 30]], "another region");
    }
    {
      await using _ = await withLocality({ distribute: [{ from: "r1/z1/*", to: { "r1/z2/*": 20, "r2/*": 80 } }] });
      const counts = await on.pods(300, ECHO);
      assert.equal(counts.get("echo-1"), undefined);
      const far = counts.get("echo-3") ?? 0;
      assert.ok(far > 200 && far < 275, JSON.stringify([...counts]));
    }
    {
      await using _ = await withLocality({ failoverPriority: ["rack", "shelf"] });
      assert.deepEqual([...(await on.pods(30, ECHO))], [["echo-2", 30]], "the same rack");
    }
    {
      await using _ = await withLocality({ failoverPriority: ["shelf", "rack"] });
      assert.deepEqual([...(await on.pods(30, ECHO))], [["echo-1", 30]], "the same shelf");
    }
    {
      await using _ = await withLocality({ failover: [{ from: "r1", to: "r2" }] }, IMPATIENT);
      for (const pod of ["echo-1", "echo-2"]) await eject(pod);
      assert.deepEqual([...(await on.pods(20, ECHO))], [["echo-3", 20]], "the region that was named");
    }
    {
      await using _ = await withLocality({ enabled: false });
      assert.equal((await on.pods(30, ECHO)).size, 3, "all of them");
    }
  });

  test("calls with one key have one host", async () => {
    for (const [hash, args] of [
      [{ httpHeaderName: "x-user" }, (key: string) => [ECHO, "-H", `x-user: ${key}`]],
      [{ httpCookie: { name: "user", ttl: "0s" } }, (key: string) => [ECHO, "-H", `cookie: user=${key}`]],
      [{ httpQueryParameterName: "user" }, (key: string) => [`${ECHO}/?user=${key}`]],
      [
        { httpHeaderName: "x-user", ringHash: { minimumRingSize: 64 } },
        (key: string) => [ECHO, "-H", `x-user: ${key}`],
      ],
      [{ httpHeaderName: "x-user", maglev: { tableSize: 101 } }, (key: string) => [ECHO, "-H", `x-user: ${key}`]],
    ] as const) {
      await using _ = await on.with(rule({ loadBalancer: { consistentHash: hash } }));
      const owners = new Set<string>();
      // Few keys may all have one host by chance.
      for (let key = 0; key < 8 || (owners.size === 1 && key < 40); key++) {
        const [url = "", ...rest] = args(`user-${key}`);
        const counts = await on.pods(6, url, ...rest);
        assert.equal(counts.size, 1, `${JSON.stringify(hash)}: ${JSON.stringify([...counts])}`);
        for (const pod of counts.keys()) owners.add(pod);
      }
      assert.ok(owners.size > 1, `${JSON.stringify(hash)}: one host for all keys`);
    }
    {
      await using _ = await on.with(rule({ loadBalancer: { consistentHash: { useSourceIp: true } } }));
      assert.equal((await on.pods(20, ECHO)).size, 1);
    }
    const httpCookie = { name: "c", path: "/", ttl: "60s" };
    await using _ = await on.with(rule({ loadBalancer: { consistentHash: { httpCookie } } }));
    assert.match(
      (await on.mesh.curl("client", ECHO)).headers["set-cookie"] ?? "",
      /^c="?[^;]+; Max-Age=60; Path=\/; HttpOnly/,
    );
  });

  test("what is more than a pool holds is refused and counted", async () => {
    const connectionPool = {
      tcp: { maxConnections: 1 },
      http: { http1MaxPendingRequests: 1, maxRequestsPerConnection: 1 },
    };
    await using _ = await on.with(NO_RETRIES, rule({ connectionPool }));
    const script = `for i in $(seq 8); do curl -s -o /dev/null -D - -w '%{http_code}\\n' ${ECHO}/delay/5000 & done; wait`;
    const { stdout } = await on.mesh.exec("client", ["sh", "-c", script]);
    const overloaded = stdout.match(/x-envoy-overloaded: true/g)?.length ?? 0;
    assert.ok(overloaded >= 4, stdout);
    assert.equal(stdout.match(/^503$/gm)?.length, overloaded);
    const stats = await on.mesh.exec("client", [
      "curl",
      "-s",
      "localhost:15000/stats?filter=upstream_rq_pending_overflow",
    ]);
    const counted = /outbound\|80\|\|echo\.default\.svc\.cluster\.local;?\.upstream_rq_pending_overflow: (\d+)/.exec(
      stats.stdout,
    );
    assert.equal(Number(counted?.[1]), overloaded, stats.stdout);
  });

  test("each request has a connection of its own where the pool says so, and HTTP/2 is spoken where asked", async () => {
    const protocolOf = async () => {
      const { stdout } = await on.mesh.exec("client", ["curl", "-s", "localhost:15000/stats?filter=upstream_cx"]);
      const of = (name: string) =>
        Number(new RegExp(`outbound\\|80\\|\\|echo\\.default[^:]*\\.${name}: (\\d+)`).exec(stdout)?.[1] ?? 0);
      return { all: of("upstream_cx_total"), http2: of("upstream_cx_http2_total") };
    };
    {
      await using _ = await on.with(rule({ connectionPool: { http: { maxRequestsPerConnection: 1 } } }));
      const before = await protocolOf();
      await on.pods(10, ECHO);
      assert.ok((await protocolOf()).all - before.all >= 10, "connections were used again");
    }
    {
      await using _ = await on.with(rule({ connectionPool: { http: { h2UpgradePolicy: "UPGRADE" } } }));
      const before = await protocolOf();
      assert.equal((await on.pods(10, ECHO)).get("503"), undefined);
      assert.ok((await protocolOf()).http2 > before.http2, "no HTTP/2 connection was made");
    }
    const warm = rule({
      loadBalancer: { simple: "LEAST_REQUEST", warmup: { duration: "2s", minimumPercent: 10, aggression: 1 } },
    });
    await using _ = await on.with(warm);
    assert.equal((await on.pods(30, ECHO)).size, 3);
  });
});
