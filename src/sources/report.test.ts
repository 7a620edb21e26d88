import assert from "node:assert/strict";
import { test } from "node:test";
import { formatProblem } from "./report.ts";

test("formatProblem() says in one line where something is wrong", () => {
  const problem = {
    object: "Gateway/default/web",
    field: "spec.servers",
    message: "is required",
    severity: "error",
  } as const;
  assert.equal(
    formatProblem({ ...problem, origin: { file: "web.yaml", line: 3 } }),
    "web.yaml:3: Gateway/default/web: spec.servers is required",
  );
  assert.equal(formatProblem({ ...problem, object: "", field: "", origin: undefined }), "is required");
});

test("formatProblem() keeps to one line, whatever users wrote into their objects", () => {
  const message = 'must be a host name, not "a\n2024-01-01T00:00:00Z\terror\tall is lost\u001b[31m\u009b\u2028"';
  const line = formatProblem({
    object: "Gateway/default/a\r\nb",
    field: "",
    message,
    severity: "error",
    origin: undefined,
  });
  assert.equal(
    line,
    'Gateway/default/a\\u000d\\u000ab: must be a host name, not "a\\u000a2024-01-01T00:00:00Z\\u0009error\\u0009all is lost\\u001b[31m\\u009b\\u2028"',
  );
});
