import assert from "node:assert/strict";
import { test } from "node:test";
import { checkValues } from "./check-values.ts";

const CHART = {
  meshConfig: {},
  revision: "",
  pilot: { enabled: true, replicaCount: 1, env: {}, tolerations: [], resources: { requests: { cpu: "1" } } },
};

test("checkValues() has nothing against values of the types that the chart has, nor against free names", () => {
  const asked = {
    revision: 7,
    meshConfig: { accessLogFile: "/dev/stdout" },
    pilot: {
      enabled: false,
      env: { ANY: "x" },
      resources: { limits: { cpu: 2 } },
      tolerations: [{}],
      replicaCount: null,
    },
  };
  assert.deepEqual(checkValues(asked, CHART), []);
});

test("checkValues() has nothing against variables beside those of a profile", () => {
  const profile = { pilot: { env: { PILOT_TRACE_SAMPLING: "100" } } };
  assert.deepEqual(checkValues({ pilot: { env: { ANY: "x" } } }, profile), []);
});

for (const [asked, field, message] of [
  [{ pilot: "x" }, "pilot", 'an object is wanted, this is "x"'],
  [{ pilot: { enabled: "yes" } }, "pilot.enabled", 'a boolean is wanted, this is "yes"'],
  [{ pilot: { replicaCount: "two" } }, "pilot.replicaCount", 'a number is wanted, this is "two"'],
  [{ pilot: { tolerations: {} } }, "pilot.tolerations", "a list is wanted, this is an object"],
  [{ revision: [] }, "revision", "a text is wanted, this is a list"],
] as const) {
  test(`checkValues() refuses ${JSON.stringify(asked)}`, () =>
    assert.deepEqual(checkValues(asked, CHART), [{ field, message, severity: "error" }]));
}

test("checkValues() warns of settings that there are not, and finds mistakes in the mesh config", () => {
  const [unknown] = checkValues({ pilot: { enabeld: true } }, CHART);
  assert.equal(unknown?.field, "pilot.enabeld");
  assert.equal(unknown?.severity, "warning");
  const [mesh] = checkValues({ meshConfig: { accessLogFile: 3 } }, CHART);
  assert.equal(mesh?.field, "meshConfig.accessLogFile");
  assert.equal(mesh?.severity, "error");
});
