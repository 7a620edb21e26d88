/** Nothing grows with use. `LEAKS=long` runs 1,000 rotations and 10,000 reconnects in place of a few seconds' worth. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { create, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { DiscoveryRequestSchema } from "#gen/envoy/service/discovery/v3/discovery_pb.ts";
import { SILENT } from "#lib/log/log.ts";
import { eventually, signedChain, temporaryFolder, testRoot } from "../../../test/support/fake-control-plane.ts";
import { RAW } from "../../../test/support/raw-messages.ts";
import { agentMetrics } from "../metrics.ts";
import { serveUnix } from "../unix-server.ts";
import { FileSecrets } from "./file-secrets.ts";
import { runOutputFiles } from "./output-files.ts";
import { secretDiscoveryService } from "./service.ts";
import { TrustBundle } from "./trust-bundle.ts";
import { WorkloadIdentity } from "./workload-identity.ts";
import { workloadSecrets } from "./workload-secrets.ts";

const LONG = process.env.LEAKS === "long";
const ROTATIONS = LONG ? 1_000 : 60;
const RECONNECTS = LONG ? 10_000 : 300;
const IDENTITY = "spiffe://cluster.local/ns/default/sa/httpbin";
const MB = 1024 * 1024;

setFlagsFromString("--expose-gc");
const gc: () => void = runInNewContext("gc");

/** What must not grow. */
async function level() {
  // What was closed is let go in the turns after it.
  for (let turn = 0; turn < 3; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    gc();
  }
  return { heap: process.memoryUsage().heapUsed, files: readdirSync("/proc/self/fd").length };
}

/** Waits until it is level again: on a busy machine sockets take their time to close. */
async function assertLevel(what: string, before: Awaited<ReturnType<typeof level>>, mostMb: number): Promise<void> {
  let [grown, files] = [0, 0];
  const isLevel = async () => {
    const after = await level();
    [grown, files] = [(after.heap - before.heap) / MB, after.files - before.files];
    return grown < mostMb && files <= 0;
  };
  const found = () => `${what}: heap ${grown.toFixed(2)} MB, descriptors ${files}`;
  await eventually("level", isLevel).catch(() => assert.fail(found()));
  if (LONG) process.stderr.write(`${found()}\n`);
}

test("rotations and reconnects leave memory and descriptors level", { timeout: 600_000 }, async (t) => {
  const folder = temporaryFolder(t);
  const [socket, rootsFile] = [join(folder, "sds", "socket"), join(folder, "roots.pem")];
  const root = await testRoot();
  writeFileSync(rootsFile, root.certificate.toString());
  const metrics = agentMetrics();
  const identity = new WorkloadIdentity({
    identity: IDENTITY,
    key: { curve: "P-256", rsaBits: 2048, pkcs8: false },
    ttlSeconds: 3_600,
    rotation: { gracePeriodRatio: 0.5, gracePeriodRatioJitter: 0 },
    sign: async ({ csr }) => ({ chain: await signedChain(csr, root, IDENTITY) }),
    log: SILENT,
    metrics,
  });
  const files = new FileSecrets({
    log: SILENT,
    metrics,
    debounceMs: 1,
    systemRoots: undefined,
    resolve: (path) => path,
  });
  const own = workloadSecrets({ identity, files, mounted: undefined, trustBundle: new TrustBundle() });
  const stop = new AbortController();
  const output = { folder: join(folder, "out"), mode: 0o600, source: own, log: SILENT };
  const running = [identity.run(stop.signal), runOutputFiles(output, stop.signal)];
  await serveUnix(socket, [secretDiscoveryService({ sources: [own, files], log: SILENT, metrics: agentMetrics() })], {
    signal: stop.signal,
  });
  t.after(async () => {
    stop.abort();
    await Promise.all(running);
  });

  let rotations = 0;
  identity.subscribe(() => rotations++);
  const rotate = async (count: number) => {
    for (const wanted = rotations + count; rotations < wanted; ) {
      const next = rotations + 1;
      identity.renew();
      await eventually("a rotation", () => rotations >= next);
    }
  };
  const names = ["default", "ROOTCA", `file-root:${rootsFile}`];
  const request = Buffer.from(
    toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { resourceNames: names })),
  );
  const reconnect = async () => {
    const client = new Client(`unix:${socket}`, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
    const path = "/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets";
    const stream = client.makeBidiStreamRequest(path, RAW.requestSerialize, RAW.responseDeserialize);
    const ended = once(stream, "error");
    let received = 0;
    const all = new Promise<void>((resolve) => stream.on("data", () => ++received === names.length && resolve()));
    stream.write(request);
    await all;
    stream.cancel();
    await ended;
    client.close();
  };

  await eventually("the first certificate", () => identity.current !== undefined);
  await rotate(20);
  for (let i = 0; i < 100; i++) await reconnect();
  let before = await level();
  for (let i = 0; i < RECONNECTS; i++) await reconnect();
  await assertLevel(`${RECONNECTS} reconnects`, before, 3);
  before = await level();
  await rotate(ROTATIONS);
  await assertLevel(`${ROTATIONS} rotations`, before, 3);
});
