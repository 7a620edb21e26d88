import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Env, readEnvironment } from "#lib/env/env-table.ts";
import { FOLLOWED_TYPES, limited } from "#sources/kubernetes/followed-types.ts";
import { DISCOVERY_ENVIRONMENT } from "./environment.ts";
import { kubernetesSettings } from "./kubernetes-settings.ts";

const settings = (env: Env) => kubernetesSettings(readEnvironment(DISCOVERY_ENVIRONMENT, env).values);
const followed = (env: Env) => limited(FOLLOWED_TYPES, settings(env).limits);
const kinds = (env: Env) => followed(env).map(({ kind }) => kind);

describe("kubernetesSettings()", () => {
  test("leaves nothing out by default, and elects a leader", () => {
    const { elects, sharedMeshConfig, rootMap, revocationMap, patches } = settings({});
    assert.deepEqual(followed({}), FOLLOWED_TYPES);
    assert.deepEqual(
      [elects, sharedMeshConfig, rootMap, revocationMap],
      [true, undefined, "istio-ca-root-cert", "istio-ca-crl"],
    );
    assert.deepEqual(patches, { injection: true, validation: true });
  });

  test("PILOT_IGNORE_RESOURCES leaves out kinds by name, or by the end of it", () => {
    const one = kinds({ PILOT_IGNORE_RESOURCES: " gateways.networking.istio.io ,services, pods." });
    assert.equal(one.length, FOLLOWED_TYPES.length - 1);
    assert.ok(!one.includes("Gateway") && one.includes("Service"));
    assert.ok(!kinds({ PILOT_IGNORE_RESOURCES: "*.security.istio.io" }).includes("PeerAuthentication"));
    assert.ok(kinds({ PILOT_IGNORE_RESOURCES: "gateways" }).includes("Gateway"), "a name has its group");
  });

  test("PILOT_INCLUDE_RESOURCES keeps some of these", () => {
    const env = {
      PILOT_IGNORE_RESOURCES: "*.istio.io",
      PILOT_INCLUDE_RESOURCES: "sidecars.networking.istio.io,*.security.istio.io",
    };
    const custom = followed(env).filter(({ isCustom }) => isCustom);
    assert.deepEqual(
      custom.map(({ kind }) => kind),
      ["Sidecar", "AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication"],
    );
    assert.deepEqual(
      kinds({ PILOT_INCLUDE_RESOURCES: "sidecars.networking.istio.io" }),
      FOLLOWED_TYPES.map(({ kind }) => kind),
    );
  });

  test("ISTIO_WATCH_NAMESPACE is the only one of kinds that are in namespaces", () => {
    const wrong = followed({ ISTIO_WATCH_NAMESPACE: "shop" }).filter(
      ({ namespaced, namespace }) => (namespace === "shop") !== namespaced,
    );
    assert.deepEqual(wrong, []);
  });

  test("webhooks are left alone where their name is empty", () => {
    assert.deepEqual(settings({ INJECTION_WEBHOOK_CONFIG_NAME: "" }).patches, { injection: false, validation: true });
    assert.deepEqual(settings({ VALIDATION_WEBHOOK_CONFIG_NAME: "", INJECTION_WEBHOOK_CONFIG_NAME: "x" }).patches, {
      injection: true,
      validation: false,
    });
  });

  test("ENABLE_LEADER_ELECTION is true or false, and true where it is neither", () => {
    assert.equal(settings({ ENABLE_LEADER_ELECTION: "false" }).elects, false);
    assert.equal(settings({ ENABLE_LEADER_ELECTION: "maybe" }).elects, true);
  });
});
