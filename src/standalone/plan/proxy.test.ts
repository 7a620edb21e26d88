import assert from "node:assert/strict";
import test from "node:test";
import { downwardApi, proxyLabels } from "./proxy.ts";

test("downwardApi() writes values as Kubernetes does", () => {
  assert.equal(downwardApi({ app: "web", note: 'say "hi"\nthere' }), 'app="web"\nnote="say \\"hi\\"\\nthere"\n');
});

test("proxyLabels() adds the canonical name and revision, which labels of the user override", () => {
  assert.deepEqual(proxyLabels({ workload: "web", labels: {} }), {
    "security.istio.io/tlsMode": "istio",
    "service.istio.io/canonical-name": "web",
    "service.istio.io/canonical-revision": "latest",
  });
  const labels = proxyLabels({
    workload: "web",
    labels: { app: "shop", version: "v2", "service.istio.io/canonical-name": "mine" },
  });
  assert.equal(labels["service.istio.io/canonical-name"], "mine");
  assert.equal(labels["service.istio.io/canonical-revision"], "v2");
});
