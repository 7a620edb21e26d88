import assert from "node:assert/strict";
import { test } from "node:test";
import { withInsideListener } from "./inside-listener.ts";
import { parseWorkloadFile } from "./workload-file.ts";

test("parseWorkloadFile() has the defaults of pilot-agent proxy, and inherits no environment", () => {
  const { folder, enter, user, env, statusPort, flags, log } = parseWorkloadFile(
    '{"folder":"/w","flags":{"type":"router"}}',
  );
  assert.deepEqual([folder, enter, user, env, statusPort, log], ["/w", [], 1337, {}, 15020, ""]);
  assert.deepEqual(
    [flags.type, flags.meshConfig, flags.proxyLogLevel],
    ["router", "./etc/istio/config/mesh", "warning"],
  );
});

test("parseWorkloadFile() names all that is wrong", () => {
  for (const json of ["", "[]", "7", "null"])
    assert.throws(() => parseWorkloadFile(json), { code: "WORKLOAD_FILE_INVALID" });
  const wrong = {
    folder: "w",
    enter: "nsenter",
    user: -1,
    env: { A: 1 },
    flags: { type: 7, unknown: "x" },
    statusPort: 65_536,
    log: {},
    more: true,
  };
  assert.throws(() => parseWorkloadFile(JSON.stringify(wrong)), {
    message:
      'there is no field "more"; folder must be an absolute path; enter must be a list of words; user must be a user id; ' +
      "env must be an object of texts; flags.type is not what pilot-agent proxy takes; " +
      "flags.unknown is not what pilot-agent proxy takes; statusPort must be a port; log must be a path",
  });
});

test("withInsideListener() adds to what a bootstrap has, or begins it", () => {
  const names = (bootstrap: object) => JSON.stringify(bootstrap).match(/"name":"[^"]*"/g);
  assert.deepEqual(
    names(withInsideListener({ static_resources: { listeners: [{ name: "a" }] } }, "p"))?.includes('"name":"a"'),
    true,
  );
  assert.match(JSON.stringify(withInsideListener({}, "./p")), /"pipe":\{"path":"\.\/p","mode":384\}/);
});
