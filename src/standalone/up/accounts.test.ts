import assert from "node:assert/strict";
import test from "node:test";
import type { Member } from "../mesh/mesh.ts";
import { accountsOf } from "./accounts.ts";

const PASSWD = `root:x:0:0:root:/root:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
web:x:1000:1001::/home/web:/bin/sh
istio-proxy:x:1337:1337::/:/bin/false
friend:x:1002:1337::/:/bin/false
`;

function meshAs(user: string): { readonly members: readonly Member[] } {
  const limits = { memoryBytes: undefined, cpuMillis: undefined, pids: undefined };
  const life = { restart: "always", liveness: undefined, limits } as const;
  const app = { command: ["node"], workingDir: "/", env: {}, envFrom: [], user, ...life };
  const pod = { name: "a", workload: "a", namespace: "default", serviceAccount: "default", proxy: "sidecar" } as const;
  return {
    members: [{ ...pod, labels: {}, annotations: {}, ports: [], publish: [], after: [], readiness: undefined, app }],
  };
}

test("accountsOf() finds users by name and number, and takes a number that has no entry", () => {
  assert.deepEqual(accountsOf(meshAs("web"), PASSWD), { web: { uid: 1000, gid: 1001, home: "/home/web" } });
  assert.deepEqual(accountsOf(meshAs("1000"), PASSWD), { 1000: { uid: 1000, gid: 1001, home: "/home/web" } });
  assert.deepEqual(accountsOf(meshAs("4711"), PASSWD), { 4711: { uid: 4711, gid: 4711, home: "/" } });
});

test("accountsOf() refuses a user that does not exist, and every user that would pass by the sidecar", () => {
  assert.throws(() => accountsOf(meshAs("nobdy"), PASSWD), { code: "USER_UNKNOWN", message: /no user "nobdy"/ });
  const placed = { ...meshAs("nobdy"), file: "mesh.yaml", lines: { "a.default": 12 } };
  assert.throws(() => accountsOf(placed, PASSWD), {
    message: /^mesh\.yaml:12: Cannot run workload "a": .*correct user$/,
  });
  for (const user of ["istio-proxy", "friend"]) {
    assert.throws(() => accountsOf(meshAs(user), PASSWD), { code: "USER_NOT_ALLOWED" });
  }
});
