/** The pure parts of what a running mesh can be made to do: scaling, jobs, hints, what proxies tell, liveness. */
import assert from "node:assert/strict";
import test from "node:test";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { hintsOf } from "../hints/hints.ts";
import type { Member } from "../mesh/mesh.ts";
import { readMesh } from "../mesh/read-mesh.ts";
import { blockedWorkloads, type JobMember, jobsExitCode } from "../status/jobs.ts";
import { proxyDetails } from "../status/proxy-details.ts";
import type { MemberState } from "../status/status.ts";
import type { UnitStatus } from "../supervise/unit.ts";
import { watchLiveness } from "../supervise/watch-liveness.ts";
import { scaledMembers } from "./scale.ts";

function members(...workloads: readonly string[]): readonly Member[] {
  const list = workloads.map((fields) => `  - {command: [node], ${fields}}\n`).join("");
  const text = `apiVersion: mizzen.dev/v1alpha1\nkind: Mesh\nmetadata: {name: shop}\nspec:\n  workloads:\n${list}`;
  const { mesh, problems } = readMesh({ text, file: "/srv/mesh.yaml" });
  assert.ok(mesh, JSON.stringify(problems));
  return mesh.members;
}

test("scaledMembers() keeps the replicas that are there and numbers new ones", () => {
  const names = (all: readonly Member[]) => all.map(({ name }) => name);
  const [web, db] = members("name: web", "name: db");
  assert.ok(web && db);
  const three = scaledMembers([web, db], web, 3);
  assert.deepEqual(names(three), ["web", "db", "web-2", "web-3"]);
  assert.equal(three[0], web);
  assert.deepEqual(names(scaledMembers(three, web, 2)), ["web", "db", "web-2"]);
  assert.deepEqual(names(scaledMembers(three, web, 0)), ["db"]);
  assert.deepEqual(names(scaledMembers([db], web, 1)), ["db", "web"]);
  assert.deepEqual(names(scaledMembers([db], web, 2)), ["db", "web-1", "web-2"]);
  const numbered = members("name: web, replicas: 2", "name: web-3");
  assert.deepEqual(names(scaledMembers(numbered, numbered[0] ?? web, 3)), ["web-1", "web-2", "web-3", "web-4"]);
});

test("scaledMembers() refuses numbers that make no sense, and a published port for several", () => {
  const [web] = members('name: web, publish: ["0:80"]');
  assert.ok(web);
  for (const count of [-1, 101, 1.5]) assert.throws(() => scaledMembers([web], web, count), { code: "SCALE_INVALID" });
  assert.throws(() => scaledMembers([web], web, 2), { code: "SCALE_INVALID", message: /publishes a host port/ });
});

function jobs(...all: readonly (readonly [string, MemberState, Partial<UnitStatus>?])[]): readonly JobMember[] {
  return all.map(([fields, state, unit]) => {
    const [member] = members(...[fields, "name: a, namespace: other", "name: b, namespace: other"]);
    assert.ok(member);
    const app = { state: "running", pid: 1, restarts: 0, lastExit: "", exitCode: undefined, quickExits: 0 } as const;
    return { member, status: { state, app: { ...app, ...unit } } };
  });
}

test("jobsExitCode() is that of the first job that failed, when all have ended", () => {
  const never = "restart: never";
  assert.equal(jobsExitCode(jobs(["name: web", "running"])), undefined);
  assert.equal(jobsExitCode(jobs([`name: a, ${never}`, "done"], [`name: b, ${never}`, "running"])), undefined);
  assert.equal(jobsExitCode(jobs([`name: a, ${never}`, "done"], ["name: web", "running"])), 0);
  const failed = [`name: a, ${never}`, "failed", { exitCode: 7 }] as const;
  assert.equal(jobsExitCode(jobs(failed, [`name: b, ${never}`, "done"])), 7);
});

test("blockedWorkloads() are those that wait for a failed job, also by way of others", () => {
  const waiting = { state: "waiting" } as const;
  const all = jobs(
    ["name: a, namespace: x, restart: never", "failed", { exitCode: 7 }],
    ["name: c, after: [a.other], restart: never", "running", waiting],
    ["name: d, after: [b.other]", "running", waiting],
  ).map((job, i) => (i === 0 ? { ...job, member: { ...job.member, namespace: "other" } } : job));
  assert.deepEqual([...blockedWorkloads(all)], ["a.other", "c.default"]);
  assert.equal(jobsExitCode(all), 7, "a job that can never run is not waited for");
});

function service(name: string, selector: Record<string, string> | undefined): ConfigObject {
  const metadata = { name, namespace: "default", labels: {}, annotations: {} } as ConfigObject["metadata"];
  return { kind: "Service", metadata, spec: { selector }, origin: { file: "/srv/s.yaml", line: 4 } };
}

test("hintsOf() names Services that select nothing, and workloads that no Service selects", () => {
  const all = members(
    "name: web, labels: {app: web}, ports: [80], replicas: 2",
    "name: lost, labels: {app: lots}, ports: [80]",
    "name: caller",
    "name: job, restart: never, ports: [80]",
  );
  const lines = { "lost.default": 7 };
  const objects = [service("web", { app: "web" }), service("lost", { app: "lost" }), service("outside", undefined)];
  assert.deepEqual(hintsOf({ members: all, objects, file: "/srv/mesh.yaml", lines }), [
    '/srv/s.yaml:4: Service "lost" in namespace "default" selects no workload (app=lost): calls to it fail; correct spec.selector, or the labels of a workload',
    '/srv/mesh.yaml:7: workload "lost" is selected by no Service in namespace "default" (labels app=lots): nobody can call it by a name; add a Service, or correct the labels',
  ]);
});

test("proxyDetails() reads certificate, last push and refusals from the metrics of a proxy", () => {
  const metrics = `# TYPE x gauge
istio_agent_cert_expiry_seconds{resource_name="default"} 60.5
envoy_cluster_manager_cds_update_time{} 5000
envoy_listener_manager_lds_update_time{} 7000
envoy_cluster_manager_cds_update_rejected{} 1
envoy_listener_manager_lds_update_rejected{} 2
envoy_cluster_http2_requests_rejected_with_underscores_in_headers{cluster_name="a"} 9
`;
  assert.deepEqual(proxyDetails(metrics, 1000), { certificateEnds: 61_500, lastPush: 7000, rejected: 3 });
  assert.deepEqual(proxyDetails("", 1000), { certificateEnds: undefined, lastPush: undefined, rejected: 0 });
});

test("watchLiveness() gives up after as many failures in a row as it was told, and not before", async () => {
  const answers = [undefined, "no", undefined, "no", "no", "really no"];
  let asked = 0;
  const dead: string[] = [];
  const timing = { initialDelayMs: 0, periodMs: 1, failureThreshold: 3 };
  const ask = async () => answers[asked++];
  await watchLiveness({ ask, timing, onDead: (why) => dead.push(why) }, new AbortController().signal);
  assert.deepEqual([asked, dead], [6, ["really no"]]);
});
