import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CLUSTER_TYPE } from "#protocol/messages/type-urls.ts";
import { eventually, startFakeControlPlane, testRoot } from "../../../test/support/fake-control-plane.ts";
import { deltaRequest, setUp } from "../../../test/support/xds-proxy-rig.ts";

test("a connection that the control plane announces to end is replaced before it ends, without an error", async (t) => {
  const { plane, envoy, connected, lines, metrics } = await setUp(t);
  const stream = envoy();
  stream.resume();
  stream.write(deltaRequest(CLUSTER_TYPE));
  const { stream: first } = await connected();
  plane.drain(60_000);
  const [status] = await once(stream, "status");
  assert.equal(status.code, 0);
  assert.match(lines.join(""), /moving to another connection to localhost:\d+: the control plane is closing this one/);
  const next = envoy();
  next.write(deltaRequest(CLUSTER_TYPE));
  const { stream: second } = await connected(2);
  assert.notEqual(second.getPeer(), first.getPeer());
  assert.doesNotMatch(lines.join(""), /\twarn\t|\terror\t/);
  assert.match(metrics.text(), /istiod_connection_terminations{type="error"} 0\n/);
  next.cancel();
});

test("streams move to a connection for which the new root was asked when the root file changes", async (t) => {
  const { plane, folder, envoy, connected, lines } = await setUp(t);
  const stream = envoy();
  stream.resume();
  stream.write(deltaRequest(CLUSTER_TYPE));
  await connected();
  const other = (await testRoot("other")).certificate.toString();
  writeFileSync(join(folder, "root.pem"), `${other}\n${plane.rootPem}`);
  const [status] = await once(stream, "status");
  assert.equal(status.code, 0);
  assert.match(lines.join(""), /the root certificate changed/);
  const next = envoy();
  next.write(deltaRequest(CLUSTER_TYPE));
  await connected(2);
  next.cancel();
});

test("a stream stays where it is when the new root is of no use", async (t) => {
  const { folder, envoy, connected, lines, upstreams } = await setUp(t);
  const stream = envoy();
  stream.resume();
  stream.write(deltaRequest(CLUSTER_TYPE));
  await connected();
  writeFileSync(join(folder, "root.pem"), "half of a file");
  const words = /Failed to init xds proxy dial options: .*root\.pem holds no certificate in PEM form/;
  await eventually("the warning", () => words.test(lines.join("")));
  assert.deepEqual([stream.destroyed, upstreams.length], [false, 1]);
  stream.cancel();
});

test("a connection that was made ahead serves the first stream, and only that", async (t) => {
  const { proxy, envoy, connected } = await setUp(t);
  await proxy.connectAhead(new AbortController().signal);
  const stream = envoy();
  stream.write(deltaRequest(CLUSTER_TYPE));
  const { stream: first } = await connected();
  const next = envoy();
  next.write(deltaRequest(CLUSTER_TYPE));
  const { stream: second } = await connected(2);
  assert.notEqual(second.getPeer(), first.getPeer());
  stream.cancel();
  next.cancel();
});

test("a stream goes by the root that was read last when the file is broken or gone", async (t) => {
  const { folder, envoy, connected, lines } = await setUp(t);
  const root = join(folder, "root.pem");
  const breakers = [() => undefined, () => writeFileSync(root, "half of a file"), () => rmSync(root)];
  for (const [index, breakIt] of breakers.entries()) {
    breakIt();
    const stream = envoy();
    stream.write(deltaRequest(CLUSTER_TYPE));
    await connected(index + 1);
    stream.cancel();
  }
  assert.match(lines.join(""), /\twarn\t.*root\.pem holds no certificate in PEM form; what was read before is used/);
});

test("a stream fails when no root was ever read", async (t) => {
  const { folder, envoy } = await setUp(t);
  writeFileSync(join(folder, "root.pem"), "half of a file");
  const [error] = await once(envoy().resume(), "error");
  assert.match(error.details, /holds no certificate/);
});

test("a connection that cannot be made ahead is left to the first stream", async (t) => {
  const { folder, plane, proxy, envoy, connected } = await setUp(t);
  writeFileSync(join(folder, "root.pem"), "half of a file");
  await proxy.connectAhead(new AbortController().signal);
  writeFileSync(join(folder, "root.pem"), plane.rootPem);
  const stream = envoy();
  stream.write(deltaRequest(CLUSTER_TYPE));
  await connected();
  stream.cancel();
});

test("a stream stays where it is when no other connection can be had", async (t) => {
  const { plane, envoy, connected, upstreams } = await setUp(t);
  const stream = envoy();
  stream.resume();
  stream.write(deltaRequest(CLUSTER_TYPE));
  const { stream: upstream, requests } = await connected();
  let ended = false;
  stream.on("status", () => {
    ended = true;
  });
  // The port is closed for newcomers and the end announced to those who are there.
  plane.stopListening();
  plane.drain(60_000);
  await new Promise((resolve) => setTimeout(resolve, 300));
  stream.write(deltaRequest(CLUSTER_TYPE, { responseNonce: "1" }));
  await once(upstream, "data");
  assert.deepEqual([ended, requests.length, upstreams.length], [false, 2, 1]);
  stream.cancel();
});

test("a certificate of another name is refused, unless that name is the one to expect", async (t) => {
  const plane = await startFakeControlPlane({ onStream: (stream) => stream.on("error", () => undefined) });
  const upstream = (folder: string, subjectAltName: string) => {
    const rootCertificate = join(folder, "root.pem");
    return { address: plane.address, rootCertificate, subjectAltName, headers: {}, fetchToken: async () => "" };
  };
  const { folder } = await setUp(t, { plane });
  const wrong = await setUp(t, { plane, upstream: upstream(folder, "istiod.other.svc") });
  const refused = wrong.envoy();
  refused.resume();
  const [error] = await once(refused, "error");
  assert.equal(error.code, 14);
  assert.match(error.details, /: certificate is valid for istiod\.istio-system\.svc, not istiod\.other\.svc$/);
  const right = await setUp(t, { plane, upstream: upstream(folder, "istiod.istio-system.svc") });
  const accepted = right.envoy();
  accepted.write(deltaRequest(CLUSTER_TYPE));
  await eventually("the connection", () => /connected to delta upstream XDS server/.test(right.lines.join("")));
  accepted.cancel();
});

test("a certificate of an unknown authority is refused with the file whose roots did not sign it", async (t) => {
  const { folder, envoy } = await setUp(t);
  const file = join(folder, "root.pem");
  writeFileSync(file, (await testRoot("other")).certificate.toString());
  const [error] = await once(envoy().resume(), "error");
  assert.equal(error.code, 14);
  assert.ok(error.details.endsWith(`certificate signed by unknown authority, by none of ${file}`), error.details);
});
