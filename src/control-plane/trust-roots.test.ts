/** New roots reach agents at once, where ISTIO_MULTIROOT_MESH says that there can be several. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { TrustBundle } from "#agent/sds/trust-bundle.ts";
import { caCertificates } from "#agent/xds-proxy/proxy-config-resource.ts";
import { CLUSTER_TYPE, HEALTH_TYPE, LISTENER_TYPE, PROXY_CONFIG_TYPE } from "#protocol/messages/type-urls.ts";
import { selfSigned } from "../../test/support/certificates.ts";
import { TestControlPlane } from "../../test/support/control-plane.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";

const NODE = nodeOf(proxyOf({ ip: "10.1.0.1" }));

function meshWith(pem: string): string {
  return JSON.stringify({ caCertificates: [{ pem }] });
}

test("a root that is added to the mesh config reaches an agent within a second", async () => {
  const mesh = join(mkdtempSync(join(tmpdir(), "trust-roots-")), "mesh.yaml");
  const [first, second] = [selfSigned("first").certificate, selfSigned("second").certificate];
  writeFileSync(mesh, meshWith(first));
  try {
    await using controlPlane = new TestControlPlane({
      flags: ["--meshConfig", mesh],
      env: { ISTIO_MULTIROOT_MESH: "true" },
    });
    await controlPlane.ready();
    using client = new XdsClient(await controlPlane.address("gRPC discovery service"), { node: NODE });
    client.request(CLUSTER_TYPE);
    await client.take(CLUSTER_TYPE);
    client.request(PROXY_CONFIG_TYPE);
    const bundle = new TrustBundle();
    const told = async () => {
      const [resource] = (await client.take(PROXY_CONFIG_TYPE)).resources;
      assert.ok(resource);
      bundle.update(caCertificates(resource.value));
      return bundle.merge("");
    };
    const before = await told();
    assert.ok(before.includes(first.trim()) && !before.includes(second.trim()));
    assert.equal(before.match(/BEGIN/g)?.length, 2, "the root of the mesh's own authority is among them");
    let changes = 0;
    bundle.subscribe(() => changes++);
    const at = performance.now();
    writeFileSync(mesh, meshWith(`${first}\n${second}`));
    assert.ok((await told()).includes(second.trim()));
    const took = performance.now() - at;
    assert.equal(changes, 1, "the agent pushes its roots again");
    assert.ok(took < 10_000, `it took ${took} ms`);
  } finally {
    rmSync(dirname(mesh), { recursive: true });
  }
});

test("without several roots agents that ask for them are not answered, as nobody is who tells his health", async () => {
  await using controlPlane = new TestControlPlane();
  await controlPlane.ready();
  using client = new XdsClient(await controlPlane.address("gRPC discovery service"), { node: NODE });
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
  client.request(PROXY_CONFIG_TYPE);
  client.request(HEALTH_TYPE, { error: { code: 13, message: "not ready" } });
  client.request(LISTENER_TYPE);
  await client.take(LISTENER_TYPE);
  assert.deepEqual(client.waiting, []);
});
