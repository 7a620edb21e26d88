import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cp, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { restartsOf } from "#standalone/status/status.ts";
import { assertSettled } from "../../support/envoy-settled.ts";
import { Load } from "../../support/load.ts";
import { meshUnavailable, type RunningMesh, scratchFolder, upMesh } from "../../support/mesh-run.ts";

const SUBSETS = {
  apiVersion: "networking.istio.io/v1",
  kind: "DestinationRule",
  metadata: { name: "httpbin", namespace: "default" },
  spec: {
    host: "httpbin",
    subsets: [
      { name: "v1", labels: { version: "v1" } },
      { name: "v2", labels: { version: "v2" } },
    ],
  },
};
const PROXIES = ["sleep", "httpbin-v1", "httpbin-v2", "istio-ingressgateway"];
const HTTPBIN = "http://httpbin:8000";

function routes(...weights: readonly (readonly [subset: string, weight: number])[]): object {
  const route = weights.map(([subset, weight]) => ({ destination: { host: "httpbin", subset }, weight }));
  return virtualService([{ route, headers: { response: { set: { "x-weights": weights.join() } } } }]);
}

function virtualService(http: readonly object[]): object {
  return {
    apiVersion: "networking.istio.io/v1",
    kind: "VirtualService",
    metadata: { name: "httpbin-mesh", namespace: "default" },
    spec: { hosts: ["httpbin"], http },
  };
}

function peerAuthentication(mode: string): object {
  return {
    apiVersion: "security.istio.io/v1",
    kind: "PeerAuthentication",
    metadata: { name: "default", namespace: "default" },
    spec: { mtls: { mode } },
  };
}

describe("a mesh with two versions of httpbin", { skip: meshUnavailable() }, () => {
  let folder: Awaited<ReturnType<typeof scratchFolder>>;
  let mesh: RunningMesh;

  /** Writes as editors do: beside the file, then over it. */
  async function apply(file: string, object: object | string): Promise<number> {
    const text = typeof object === "string" ? object : JSON.stringify(object);
    await writeFile(join(folder.path, `.${file}`), text);
    await rename(join(folder.path, `.${file}`), join(folder.path, `${file}.yaml`));
    return performance.now();
  }

  async function remove(file: string): Promise<void> {
    await rm(join(folder.path, `${file}.yaml`), { force: true });
  }

  /** Which versions answered a number of calls. */
  async function versions(calls: number): Promise<Map<string, number>> {
    const { stdout } = await mesh.exec("sleep", ["curl", "-sS", "-w", "\\n", `${HTTPBIN}/hostname?[1-${calls}]`]);
    const counts = new Map<string, number>();
    for (const [name] of stdout.matchAll(/httpbin-v\d/g)) counts.set(name, (counts.get(name) ?? 0) + 1);
    return counts;
  }

  before(async () => {
    folder = await scratchFolder("samples/httpbin");
    await cp(join(import.meta.dirname, "mesh.yaml"), join(folder.path, "mesh.yaml"));
    await apply("subsets", SUBSETS);
    mesh = await upMesh(folder.path);
  });

  after(async () => {
    await mesh?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  afterEach(async () => {
    await assertSettled(mesh, PROXIES);
  });

  test("a call between workloads carries both identities and the usual headers", async () => {
    const { status, body } = await mesh.curl("sleep", `${HTTPBIN}/headers`);
    assert.equal(status, 200);
    const { headers } = JSON.parse(body) as { headers: Record<string, string> };
    const id = (account: string) => `spiffe://cluster.local/ns/default/sa/${account}`;
    const expected = new RegExp(`^By=${id("httpbin")};Hash=[0-9a-f]{64};Subject="";URI=${id("sleep")}$`);
    assert.match(headers["X-Forwarded-Client-Cert"] ?? "", expected);
    assert.equal(headers["X-Envoy-Attempt-Count"], "1");
    assert.equal(headers["X-Forwarded-Proto"], "http");
    assert.match(headers["X-Request-Id"] ?? "", /^[0-9a-f-]{36}$/);
    assert.match(headers["X-B3-Traceid"] ?? "", /^[0-9a-f]{32}$/);
    assert.equal(headers["X-B3-Sampled"], "1");
    assert.equal(headers["X-Forwarded-For"], undefined);
  });

  test("names resolve as in a cluster, with and without a sidecar", async () => {
    for (const caller of ["sleep", "outsider"]) {
      for (const host of ["httpbin", "httpbin.default", "httpbin.default.svc", "httpbin.default.svc.cluster.local"]) {
        const { status } = await mesh.curl(caller, `http://${host}:8000/status/200`);
        assert.equal(status, 200, `${caller} calls ${host}`);
      }
      const { address } = await (await mesh.workload("httpbin-v1")).status();
      const { stdout } = await mesh.exec(caller, ["getent", "hosts", address]);
      const dashed = address.replaceAll(".", "-");
      assert.match(stdout, new RegExp(`\\s${dashed}\\.httpbin\\.default\\.svc\\.cluster\\.local$`, "m"), caller);
    }
  });

  test("the gateway serves the host of its Gateway and no other", async () => {
    const address = await mesh.address();
    const ask = (host: string) => {
      const args = ["-sS", "-o", "/dev/null", "-w", "%{http_code}", "-H", `Host: ${host}`, `${address}/hostname`];
      return execFileSync("curl", args, { encoding: "utf8" });
    };
    assert.equal(ask("httpbin.example.com"), "200");
    assert.equal(ask("other.example.com"), "404");
  });

  test("access logs are JSON with the fields of the spec", async () => {
    await mesh.curl("sleep", `${HTTPBIN}/status/418`);
    const line = await logLine(mesh, "/status/418");
    const entry = JSON.parse(line) as Record<string, unknown>;
    assert.equal(entry.response_code, 418);
    assert.equal(entry.authority, "httpbin:8000");
    assert.equal(entry.upstream_cluster, "outbound|8000||httpbin.default.svc.cluster.local");
    assert.equal(entry.route_name, "default");
    assert.equal(entry.x_forwarded_for, null);
    assert.equal(entry.response_flags, "-");
    assert.equal(Object.keys(entry).length, 24);
  });

  test("STRICT refuses plain text from outside the mesh and serves callers inside", async () => {
    await apply("strict", peerAuthentication("STRICT"));
    const refused = await eventually(async () => {
      const { code } = await mesh.exec("outsider", ["curl", "-sS", "-m", "5", `${HTTPBIN}/status/200`]);
      return code !== 0;
    });
    assert.ok(refused, "plain text was still served");
    assert.equal((await mesh.curl("sleep", `${HTTPBIN}/status/200`)).status, 200);
    await remove("strict");
    assert.ok(
      await eventually(async () => (await mesh.exec("outsider", ["curl", "-sSf", `${HTTPBIN}/status/200`])).code === 0),
    );
  });

  test("an 80/20 split is within 3 points", async () => {
    await apply("route", routes(["v1", 80], ["v2", 20]));
    const weights = async () => (await mesh.curl("sleep", `${HTTPBIN}/hostname`)).headers["x-weights"];
    assert.ok(await eventually(async () => (await weights()) === "v1,80,v2,20"));
    // Envoy throws dice: with so many calls chance alone stays within 3 points in all but one of a million runs.
    const calls = 4_000;
    const counts = await versions(calls);
    const [v1 = 0, v2 = 0] = [counts.get("httpbin-v1"), counts.get("httpbin-v2")];
    assert.equal(v1 + v2, calls);
    assert.ok(Math.abs((100 * v2) / calls - 20) <= 3, `v2 got ${v2} of ${calls}`);
    await remove("route");
  });

  test("a changed file takes effect in under a second and without a failed request", async () => {
    await apply("route", routes(["v1", 100]));
    await using load = new Load(mesh, "sleep", `${HTTPBIN}/hostname`);
    await load.first(0, ({ body }) => body.includes("v1"));
    const took: number[] = [];
    for (const version of ["v2", "v1", "v2", "v1"]) {
      const changedAt = await apply("route", routes([version, 100]));
      const { at } = await load.first(changedAt, ({ body }) => body.includes(version));
      took.push(Math.round(at - changedAt));
      await assertSettled(mesh, ["sleep"]);
    }
    // On a busy machine some may wait for their turn; the fastest tells what the mesh takes.
    assert.ok(Math.min(...took) < 1_000, `changes took ${took.join(", ")} ms`);
    assert.deepEqual(load.failures, []);
    await remove("route");
  });

  test("broken configuration keeps the last good version and is said with file and line", async () => {
    await apply("route", routes(["v2", 100]));
    assert.ok(await eventually(async () => (await versions(5)).get("httpbin-v2") === 5));
    await apply("route", `${JSON.stringify(virtualService([{ route: [{ destination: { host: 5 } }] }]))}\n`);
    assert.ok(await eventually(async () => /route\.yaml:1.*VirtualService/.test(await mesh.logs("istiod"))));
    assert.equal((await versions(20)).get("httpbin-v2"), 20);
    await remove("route");
  });

  test("faults and retries do what they say", async () => {
    const fault = { abort: { httpStatus: 503, percentage: { value: 100 } } };
    const route = [{ destination: { host: "httpbin" } }];
    await apply(
      "route",
      virtualService([
        { match: [{ uri: { prefix: "/get" }, headers: { "end-user": { exact: "jason" } } }], fault, route },
        { match: [{ method: { exact: "GET" }, uri: { prefix: "/delay" } }], timeout: "0.5s", route },
        { route },
      ]),
    );
    const jason = ["-H", "end-user: jason"];
    assert.ok(await eventually(async () => (await mesh.curl("sleep", `${HTTPBIN}/get`, jason)).status === 503));
    assert.equal((await mesh.curl("sleep", `${HTTPBIN}/get`)).status, 200);
    assert.equal((await mesh.curl("sleep", `${HTTPBIN}/delay/3`)).status, 504);
    await remove("route");
  });

  test("traffic goes on without the control plane, which comes back with the same root", async () => {
    await using load = new Load(mesh, "sleep", `${HTTPBIN}/hostname`);
    await load.first(0, ({ status }) => status === 200);
    const killed = await mesh.kill("istiod");
    const killedAt = performance.now();
    await mesh.until(({ members }) =>
      members.some(({ name, ready, app }) => name === "istiod" && ready && app?.pid !== killed),
    );
    await load.first(Math.max(killedAt + 500, performance.now()), ({ status }) => status === 200);
    const changedAt = await apply("route", routes(["v2", 100]));
    await load.first(changedAt, ({ body }) => body.includes("v2"));
    assert.deepEqual(load.failures, []);
    await remove("route");
  });

  for (const part of ["app", "agent", "envoy"] as const) {
    test(`a killed ${part} comes back while the other version serves`, async () => {
      const before = restartsOf(await mesh.member("httpbin-v2"));
      const killed = await mesh.kill({ member: "httpbin-v2", process: part });
      await mesh.until(({ members }) =>
        members.some((member) => member.name === "httpbin-v2" && member.ready && restartsOf(member) > before),
      );
      assert.throws(() => process.kill(killed, 0));
      assert.ok(await eventually(async () => (await versions(20)).size === 2), "v2 serves again");
    });
  }
});

async function logLine(mesh: RunningMesh, part: string): Promise<string> {
  let found: string | undefined;
  await eventually(async () => {
    found = (await mesh.logs("sleep", "proxy")).split("\n").find((line) => line.startsWith("{") && line.includes(part));
    return found !== undefined;
  });
  return found ?? assert.fail(`no access log about ${part}`);
}

/** Whether the condition comes true within some seconds. */
async function eventually(condition: () => Promise<boolean>): Promise<boolean> {
  const end = performance.now() + 60_000;
  while (performance.now() < end) {
    if (await condition()) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}
