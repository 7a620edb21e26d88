/** What arrives on 15017: reviews for /inject and /validate. Anyone can send them. */
import assert from "node:assert/strict";
import { testInjector } from "#inject/injector/fixture.ts";
import { handleWebhook } from "#webhooks/handle.ts";
import type { FuzzTarget } from "./target.ts";

const context = {
  injection: () => ({ injector: INJECTOR, proxyConfigs: [], nativeSidecars: () => false }),
  count: () => {},
  log: () => {},
};
const INJECTOR = testInjector();

export const target: FuzzTarget = {
  maxBytes: 4096,
  dictionary: [
    '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE","object":',
    '{"metadata":{"name":"a","annotations":{}},"spec":{"containers":[{"name":"a"}]}}',
    '"sidecar.istio.io/proxyCPU":"1"',
    '"proxy.istio.io/config":"{}"',
    '"inject.istio.io/templates":"sidecar"',
    '{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"v"},"spec":{}}',
    '"AuthorizationPolicy"',
    '"security.istio.io/v1"',
    '"__proto__":',
    "[[[[",
    '{"a":',
    "null",
    '\\"',
  ],
  run(input) {
    const body = input.toString();
    for (const path of ["/inject", "/inject/cluster/c/net/n", "/validate"]) {
      const answer = handleWebhook({ path, contentType: "application/json", body }, context);
      assert.ok(answer.status === 200 || answer.status === 400, `status ${answer.status}`);
      if (answer.status === 200) assert.equal(typeof JSON.parse(answer.body).response.allowed, "boolean");
    }
  },
};
