import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "#lib/kubernetes/api-client.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { isProof } from "./validation-proof.ts";

const refused = (status: number, message: string) => new ApiError(message, { status, reason: "" });

test("validation works when it was asked and refused, or when nothing can be tried", () => {
  const denied = 'admission webhook "rev.validation.istio.io" denied the request: configuration is invalid';
  assert.ok(isProof(refused(400, denied)));
  assert.ok(isProof(refused(404, "the server could not find the requested resource")));
  assert.ok(isProof(refused(400, 'admission webhook "other.example.com" does not support dry run')));
});

test("what keeps the API server from asking is no proof", () => {
  const unreached = 'failed calling webhook "rev.validation.istio.io": no endpoints available for service "istiod"';
  assert.ok(!isProof(refused(500, unreached)));
  assert.ok(!isProof(refused(403, "gateways.networking.istio.io is forbidden: cannot create")));
  assert.ok(!isProof(refused(422, "Gateway is invalid: spec.servers: Required value")));
  assert.ok(!isProof(new MeshError("KUBE_API_UNREACHABLE", "denied the request")));
});
