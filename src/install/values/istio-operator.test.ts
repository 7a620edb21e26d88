import assert from "node:assert/strict";
import { test } from "node:test";
import { askedBy, askedTogether, NOTHING_ASKED, withSet } from "./istio-operator.ts";

const operator = (spec: object, name?: string) => ({
  apiVersion: "install.istio.io/v1alpha1",
  kind: "IstioOperator",
  ...(name !== undefined && { metadata: { name } }),
  spec,
});

test("askedBy() leaves plain values as they are, and takes those under `values.` for the same", () => {
  const plain = { pilot: { env: { A: "b" } }, revision: "canary" };
  assert.deepEqual(askedBy(plain, "f"), { profile: "", values: plain, components: {} });
  assert.deepEqual(askedBy({ values: plain, profile: "demo" }, "f"), {
    profile: "demo",
    values: plain,
    components: {},
  });
});

test("askedBy() reads an IstioOperator: its name, profile, images, mesh config, values", () => {
  const spec = {
    profile: "minimal",
    hub: "example.com/mesh",
    tag: "1",
    revision: "r",
    namespace: "ignored, as Istio does",
    meshConfig: { accessLogFile: "/dev/stdout" },
    values: { global: { network: "n" } },
    unvalidatedValues: { global: { network: "m" } },
    components: { pilot: { enabled: false } },
  };
  assert.deepEqual(askedBy(operator(spec, "main"), "f"), {
    profile: "minimal",
    values: {
      ownerName: "main",
      revision: "r",
      meshConfig: { accessLogFile: "/dev/stdout" },
      global: { hub: "example.com/mesh", tag: "1", network: "m" },
    },
    components: { pilot: { enabled: false } },
  });
});

test("an IstioOperator whose parts are empty asks for nothing", () => {
  const empty = operator({ values: null, components: null, profile: null });
  assert.deepEqual(askedBy(empty, "f"), NOTHING_ASKED);
  assert.deepEqual(askedBy({ kind: "IstioOperator" }, "f"), NOTHING_ASKED);
});

test("askedTogether() takes lists as a whole, and keeps what takes a value away", () => {
  const one = askedBy({ pilot: { resources: {}, env: { A: "1" } }, components: { ingressGateways: [{}] } }, "f");
  const two = askedBy({ pilot: { resources: null }, components: { ingressGateways: [] } }, "g");
  assert.deepEqual(askedTogether(one, two), {
    profile: "",
    values: { pilot: { resources: null, env: { A: "1" } } },
    components: { ingressGateways: [] },
  });
});

test("withSet() changes single items of what files asked for, by the names of values and of an IstioOperator", () => {
  const file = askedBy(
    operator({ components: { ingressGateways: [{ name: "a" }, { name: "b", enabled: true }] } }),
    "f",
  );
  const sets = ["components.ingressGateways[name:b].enabled=false", "tag=5", "values.pilot.env.A=1", "pilot.env.B=2"];
  assert.deepEqual([...sets, "profile=demo", "namespace=x"].reduce(withSet, file), {
    profile: "demo",
    values: { global: { tag: "5" }, pilot: { env: { A: 1, B: 2 } } },
    components: { ingressGateways: [{ name: "a" }, { name: "b", enabled: false }] },
  });
  assert.throws(() => withSet(file, "components=x"), { message: "--set components=x: name what is under components" });
});

for (const [spec, message] of [
  [{ components: [] }, "f: components: an object is wanted"],
  [{ components: { pilots: {} } }, "f: components.pilots: there is no such component"],
  [{ values: "x" }, "f: values: an object is wanted"],
] as const) {
  test(`askedBy() refuses ${JSON.stringify(spec)}`, () =>
    assert.throws(() => askedBy(operator(spec), "f"), { code: "INSTALL_INVALID", message }));
}

test("askedBy() refuses an object of another kind, and a spec that is none", () => {
  assert.throws(() => askedBy({ kind: "Deployment", spec: {} }, "f.yaml"), /f\.yaml: a Deployment is neither/);
  assert.throws(() => askedBy({ kind: "IstioOperator", spec: [] }, "f.yaml"), /f\.yaml: spec: an object is wanted/);
});
