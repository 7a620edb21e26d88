import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { configz } from "./configz.ts";

function object(kind: string): ConfigObject {
  const metadata = { name: "a", namespace: "default", labels: {}, annotations: {}, createdAt: 0 };
  return { kind, metadata, spec: {}, origin: undefined };
}

test("configz() shows each kind in its own group and served version", () => {
  const kinds = ["EnvoyFilter", "Ingress", "Pod", "ProxyConfig", "Sidecar"];
  const shown = configz(kinds.map(object), undefined) as readonly { readonly apiVersion: string }[];
  assert.deepEqual(
    shown.map(({ apiVersion }) => apiVersion),
    [
      "networking.istio.io/v1alpha3",
      "networking.k8s.io/v1",
      "v1",
      "networking.istio.io/v1beta1",
      "networking.istio.io/v1",
    ],
  );
});
