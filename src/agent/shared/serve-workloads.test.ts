/** One agent, several workloads in namespaces of their own, real Envoys. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { NameTableSchema } from "#gen/istio/networking/nds/v1/nds_pb.ts";
import { parseDeltaRequest } from "#protocol/messages/delta-request.ts";
import { formatDeltaResponse, resourceFrame } from "#protocol/messages/delta-response.ts";
import { NAME_TABLE_TYPE } from "#protocol/messages/type-urls.ts";
import { spawnAgent, WHERE_ENVOY } from "../../../test/support/agent-process.ts";
import {
  eventually,
  type Stream,
  startFakeControlPlane,
  temporaryFolder,
} from "../../../test/support/fake-control-plane.ts";
import {
  curlInside,
  letIn,
  makeWorkload,
  NO_NAMESPACES,
  removeNamespace,
  workloadJson,
  writeWorkload,
} from "../../../test/support/namespaced-workloads.ts";

const NAMES = toBinary(
  NameTableSchema,
  create(NameTableSchema, { table: { "a.example": { ips: ["10.0.0.1"], registry: "External" } } }),
);

function answer(stream: Stream): void {
  stream.on("error", () => undefined);
  stream.on("data", (bytes: Buffer) => {
    const { typeUrl, nonce } = parseDeltaRequest(bytes);
    if (nonce !== "") return;
    const resources =
      typeUrl === NAME_TABLE_TYPE ? [resourceFrame(typeUrl, { name: "names", version: "1", value: NAMES })] : [];
    stream.write(
      formatDeltaResponse({ typeUrl, nonce: typeUrl, systemVersion: "1", resources, removed: [], controlPlane: "" }),
    );
  });
}

function envoysOf(agent: number | undefined): number[] {
  const children = readFileSync(`/proc/${agent}/task/${agent}/children`, "utf8")
    .trim()
    .split(" ")
    .filter(Boolean)
    .map(Number);
  return children.filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("envoy-rev"));
}

const options = { ...WHERE_ENVOY, skip: NO_NAMESPACES ?? WHERE_ENVOY.skip, timeout: 180_000 };

test(
  "serve keeps workloads in namespaces apart, starts and ends them, and one's failure is its own",
  options,
  async (t) => {
    const folder = temporaryFolder(t);
    letIn(folder);
    const plane = await startFakeControlPlane({ onStream: answer });
    t.after(() => plane.close());
    const id = process.pid.toString(36);
    const [first, second] = ["a", "b"].map((name) => {
      const made = makeWorkload(`shared-${id}-${name}`, join(folder, name), plane.rootPem);
      t.after(() => removeNamespace(made));
      return made;
    });
    assert.ok(first !== undefined && second !== undefined);
    const workloads = join(folder, "workloads");
    mkdirSync(workloads);
    writeWorkload(workloads, "first", workloadJson(first, plane.address));
    writeWorkload(workloads, "broken", { folder: "relative" });
    writeWorkload(workloads, "homeless", {
      ...workloadJson(first, plane.address),
      enter: ["nsenter", "--net=/nowhere", "--"],
    });
    const agent = spawnAgent(["serve", workloads], { cwd: folder, env: {} });
    t.after(() => agent.end());
    const logOf = (name: string) =>
      existsSync(join(folder, name, "agent.log")) ? readFileSync(join(folder, name, "agent.log"), "utf8") : "";
    const ready = (workload: typeof first, name: string) =>
      eventually(
        () => `${name} to be ready:\n${agent.text()}\n${logOf(name)}`,
        () => curlInside(workload, "http://127.0.0.1:15021/healthz/ready").endsWith("200"),
      );
    await ready(first, "a");
    writeWorkload(workloads, "second", workloadJson(second, plane.address));
    await ready(second, "b");
    const stateOf = (name: string) => JSON.parse(readFileSync(join(workloads, `${name}.state`), "utf8"));
    assert.match(stateOf("broken").reason, /folder must be an absolute path/);
    await eventually("a failed start", () => {
      const { state, restarts } = stateOf("homeless");
      return state === "failed" || restarts > 0;
    });
    // Listeners that need no certificate are not kept waiting for it.
    await eventually("certificates", () =>
      ["a", "b"].every((name) => logOf(name).includes("generated new workload certificate")),
    );
    for (const workload of [first, second]) {
      const metrics = curlInside(workload, "http://127.0.0.1:15020/stats/prometheus");
      assert.match(metrics, /istio_agent_cert_expiry_seconds[\s\S]*envoy_cluster_manager/);
      assert.match(curlInside(workload, "http://127.0.0.1:15020/debug/ndsz"), /a\.example/);
      assert.match(
        curlInside(workload, "http://127.0.0.1:15000/server_info"),
        new RegExp(`httpbin|${workload.netns}\\.default`),
      );
    }
    assert.equal(plane.signings.length, 2, "each has a certificate of its own");
    const envoys = envoysOf(agent.child.pid);
    assert.equal(envoys.length, 2);
    for (const pid of envoys) assert.match(readFileSync(`/proc/${pid}/status`, "utf8"), /^Uid:\t1337\t/m);
    const netnsOf = (pid: number) => execFileSync("readlink", [`/proc/${pid}/ns/net`], { encoding: "utf8" });
    assert.notEqual(netnsOf(envoys[0] ?? 0), netnsOf(envoys[1] ?? 0));
    process.kill(envoys[0] ?? 0, "SIGKILL");
    await eventually("the report", () => [logOf("a"), logOf("b")].some((log) => log.includes("Envoy was killed")));
    assert.ok(curlInside(second, "http://127.0.0.1:15021/healthz/ready").endsWith("200"));
    await ready(first, "a");
    rmSync(join(workloads, "second.json"));
    await eventually("its end", () => envoysOf(agent.child.pid).length === 1);
    await eventually("no state", () => !existsSync(join(workloads, "second.state")));
    assert.ok(curlInside(first, "http://127.0.0.1:15021/healthz/ready").endsWith("200"));
    agent.child.kill("SIGTERM");
    await eventually("the end", () => agent.child.exitCode === 0);
  },
);
