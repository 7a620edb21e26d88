/** Workloads that come, change and go while others drain or cannot be read, with a program in the place of Envoy. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createLogger } from "#lib/log/log.ts";
import { AGENT, writePodFiles } from "../../../test/support/agent-process.ts";
import { selfSigned } from "../../../test/support/certificates.ts";
import { eventually, temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { freePorts } from "../../../test/support/free-ports.ts";
import { letIn, writeWorkload } from "../../../test/support/namespaced-workloads.ts";
import { serveWorkloads } from "./serve-workloads.ts";
import { openLog } from "./workload-run.ts";

const { certificate: ROOT } = selfSigned("root");

/** A folder of workloads and an agent that serves it. */
async function agentFor(t: TestContext) {
  const folder = temporaryFolder(t);
  letIn(folder);
  const workloads = join(folder, "workloads");
  mkdirSync(workloads);
  const [stop, hurry] = [new AbortController(), new AbortController()];
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line) });
  const program = [process.execPath, AGENT];
  const serve = () => {
    const signals = { stop: stop.signal, hurry: hurry.signal };
    const ended = serveWorkloads({ folder: workloads, program, profiling: false, log, ...signals });
    t.after(async () => {
      stop.abort();
      hurry.abort();
      await ended;
    });
  };
  /** Its Envoy notes each of its starts, and stays until it is killed. */
  const write = async (name: string, drain: string, root = ROOT) => {
    const pod = join(folder, name);
    const [statusPort = 0, proxyAdminPort = 0, dnsPort = 0] = await freePorts(3);
    writePodFiles(pod, root);
    const envoy = join(pod, "envoy");
    writeFileSync(envoy, `#!/bin/sh\necho started >> ${pod}/starts\nexec sleep 600\n`, { mode: 0o755 });
    writeWorkload(workloads, name, {
      folder: pod,
      user: process.getuid?.() ?? 0,
      statusPort,
      log: join(pod, "agent.log"),
      env: {
        INSTANCE_IP: "127.0.0.1",
        ISTIO_META_DNS_CAPTURE: "true",
        DNS_PROXY_ADDR: `127.0.0.1:${dnsPort}`,
        CLOUD_PLATFORM: "none",
        PROXY_XDS_DEBUG_VIA_AGENT: "false",
        PROXY_CONFIG: JSON.stringify({
          binaryPath: envoy,
          statusPort,
          proxyAdminPort,
          terminationDrainDuration: drain,
          discoveryAddress: "127.0.0.1:9",
        }),
      },
    });
  };
  const starts = (name: string) => {
    const file = join(folder, name, "starts");
    return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").length : 0;
  };
  const logOf = (name: string) => {
    const file = join(folder, name, "agent.log");
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  };
  return { folder, workloads, lines, serve, write, starts, logOf };
}

test("workloads come and go while another one drains, and that one is not started twice at once", async (t) => {
  const { serve, write, starts, logOf, lines } = await agentFor(t);
  await write("slow", "600s");
  serve();
  await eventually(
    () => `a start: ${lines.join("")}`,
    () => starts("slow") === 1,
  );
  await write("slow", "1s");
  await eventually("its drain", () => logOf("slow").includes("Graceful termination period is"));
  await write("other", "1s");
  await eventually(
    () => `the other one: ${lines.join("")}${logOf("other")}`,
    () => starts("other") === 1,
  );
  assert.equal(starts("slow"), 1, "the old one has its ports still");
});

test("a workload whose start failed has its ports when the reason is gone", async (t) => {
  const { folder, serve, write, starts, lines } = await agentFor(t);
  await write("mended", "1s", "no root");
  serve();
  await eventually("a failure", () => lines.join("").includes("root-cert.pem holds no certificate in PEM form"));
  writeFileSync(join(folder, "mended/var/run/secrets/istio/root-cert.pem"), ROOT);
  await eventually(
    () => `a start: ${lines.join("")}`,
    () => starts("mended") === 1,
  );
  assert.doesNotMatch(lines.join(""), /EADDRINUSE/);
});

test("a file that cannot be read is told of its workload, and does not keep others from being served", async (t) => {
  const { serve, write, starts, workloads, lines } = await agentFor(t);
  mkdirSync(join(workloads, "odd.json"));
  serve();
  await write("plain", "1s");
  await eventually(
    () => `a start: ${lines.join("")}`,
    () => starts("plain") === 1,
  );
  const state = join(workloads, "odd.state");
  assert.match(readFileSync(state, "utf8"), /"state":"failed".*it cannot be read: EISDIR/);
  rmSync(join(workloads, "odd.json"), { recursive: true });
  await eventually("no state", () => !existsSync(state));
});

test("openLog() neither fails on a full disk nor writes to whoever has its descriptor next", (t) => {
  const full = openLog("/dev/full");
  full.write("lost\n");
  full.close();
  const path = join(temporaryFolder(t), "next");
  const next = openLog(path);
  assert.equal(next.descriptor, full.descriptor);
  full.write("late\n");
  next.write("mine\n");
  next.close();
  assert.equal(readFileSync(path, "utf8"), "mine\n");
});
