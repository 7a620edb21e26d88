/** Objects of kinds that have no effect yet: the API server takes what is right, and refuses what is not. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";

const telemetry = (spec: object) =>
  JSON.stringify({ apiVersion: "telemetry.istio.io/v1", kind: "Telemetry", metadata: { name: "t" }, spec });
const plugin = (spec: object) =>
  JSON.stringify({ apiVersion: "extensions.istio.io/v1alpha1", kind: "WasmPlugin", metadata: { name: "w" }, spec });
const override = (match: object, tags: object = {}) =>
  telemetry({ metrics: [{ providers: [{ name: "prometheus" }], overrides: [{ match, tagOverrides: tags }] }] });
const URL = "oci://registry/plugin:1";

const ACCEPTED = {
  "no spec": telemetry({}),
  "traces, metrics and logs": telemetry({
    selector: { matchLabels: { app: "web" } },
    tracing: [
      { randomSamplingPercentage: 10.5, customTags: { a: { literal: { value: "b" } }, c: { header: { name: "d" } } } },
      { randomSamplingPercentage: null, disableSpanReporting: true, match: { mode: "CLIENT" } },
    ],
    metrics: [{ reportingInterval: "5s", overrides: [{ match: { metric: "REQUEST_COUNT" }, disabled: true }] }],
    accessLogging: [{ providers: [{ name: "envoy" }], filter: { expression: "response.code >= 500" }, disabled: null }],
  }),
  "a tag that is removed": override({ customMetric: "m" }, { a: { operation: "REMOVE" }, b: { value: "c" } }),
  "a plugin": plugin({
    url: URL,
    phase: "AUTHN",
    priority: 10,
    pluginConfig: { any: { thing: [1] } },
    match: [{ mode: "SERVER", ports: [{ number: 80 }] }],
    vmConfig: {
      env: [
        { name: "A", value: "b" },
        { name: "C", valueFrom: "HOST" },
      ],
    },
  }),
  "a plugin without a scheme": plugin({ url: "registry/plugin:1", targetRefs: [{ kind: "Service", name: "s" }] }),
};
const REFUSED = {
  "too many samples": telemetry({ tracing: [{ randomSamplingPercentage: 101 }] }),
  "a tag of two kinds": telemetry({
    tracing: [{ customTags: { a: { literal: { value: "b" }, header: { name: "c" } } } }],
  }),
  "a provider without a name": telemetry({ accessLogging: [{ providers: [{}] }] }),
  "a selector and a reference": telemetry({
    selector: { matchLabels: { a: "b" } },
    targetRef: { kind: "Service", name: "s" },
  }),
  "an interval of nothing": telemetry({ metrics: [{ reportingInterval: "0s" }] }),
  "an unknown metric": override({ metric: "SOME" }),
  "two metrics": override({ metric: "REQUEST_COUNT", customMetric: "m" }),
  "a removed tag with a value": override({}, { a: { operation: "REMOVE", value: "b" } }),
  "a new tag without a value": override({}, { a: { operation: "UPSERT", value: "" } }),
  "a field that there is not": telemetry({ traces: [] }),
  "a plugin from nowhere": plugin({}),
  "a plugin by FTP": plugin({ url: "ftp://host/plugin" }),
  "a hash that is none": plugin({ url: URL, sha256: "12" }),
  "port 0": plugin({ url: URL, match: [{ ports: [{ number: 0 }] }] }),
  "a value and a host": plugin({ url: URL, vmConfig: { env: [{ name: "A", value: "b", valueFrom: "HOST" }] } }),
  "a variable twice": plugin({ url: URL, vmConfig: { env: [{ name: "A" }, { name: "A" }] } }),
  "an unknown phase": plugin({ url: URL, phase: "LATE" }),
};

describe("definitions of later kinds", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  let server: ApiServer;
  before(async () => {
    server = await startApiServer();
    await server.define(customResourceDefinitions());
  });
  after(async () => server?.[Symbol.asyncDispose]());
  const created = (object: string) =>
    server.kubectl(["create", "--dry-run=server", "--validate=strict", "-f", "-"], object);

  for (const [what, object] of Object.entries(ACCEPTED))
    test(`accepted: ${what}`, async () => assert.match(await created(object), /created/));
  for (const [what, object] of Object.entries(REFUSED))
    test(`refused: ${what}`, async () => {
      await assert.rejects(created(object), /invalid|unknown field|Unsupported value|Required value/);
    });

  test("kubectl shows, describes and explains them", async () => {
    await server.apply(ACCEPTED["traces, metrics and logs"]);
    await server.apply(ACCEPTED["a plugin"]);
    assert.match(await server.kubectl(["get", "telemetry"]), /^NAME +AGE\nt /);
    assert.match(
      await server.kubectl(["get", "wasmplugins"]),
      /^NAME +URL +PHASE +AGE\nw +oci:\/\/registry\/plugin:1 +AUTHN /,
    );
    assert.match(await server.kubectl(["describe", "telemetries", "t"]), /Reporting Interval: +5s/);
    assert.match(await server.kubectl(["explain", "wasmplugin.spec.vmConfig.env"]), /valueFrom/);
    assert.match(await server.kubectl(["get", "istio-io"]), /telemetry\.telemetry\.istio\.io\/t/);
  });
});
