import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApiCall } from "#lib/kubernetes/api-client.ts";
import { ApiError } from "#lib/kubernetes/api-client.ts";
import { createLogger } from "#lib/log/log.ts";
import { SecretAccess } from "./secret-access.ts";

const GATEWAY = { clusterId: "c1", namespace: "istio-system", serviceAccount: "gateway" };
const MINUTE = 60_000;

/** A server that answers as it is told, and a clock that stands still. */
function setUp() {
  const world = { now: 0, allowed: true, fails: undefined as Error | undefined };
  const calls: ApiCall[] = [];
  const lines: string[] = [];
  let changes = 0;
  let answered = Promise.resolve();
  const call = <Answer>(asked: ApiCall): Promise<Answer> => {
    calls.push(asked);
    const { fails, allowed } = world;
    const answer =
      fails === undefined ? Promise.resolve({ status: { allowed, reason: "RBAC" } }) : Promise.reject(fails);
    answered = answer.then(
      () => new Promise((resolve) => setImmediate(resolve)),
      () => new Promise((resolve) => setImmediate(resolve)),
    );
    return answer as Promise<Answer>;
  };
  const log = createLogger({ write: (line) => lines.push(line) });
  const apiOf = (clusterId: string) => (clusterId === "c1" ? { call } : undefined);
  const access = new SecretAccess({ apiOf, now: () => world.now, onChange: () => changes++, log });
  const ask = async () => {
    access.ask(GATEWAY);
    await answered;
    return access.mayRead(GATEWAY);
  };
  return { world, calls, lines, access, ask, changes: () => changes };
}

test("an account may read nothing before the API server said so", async () => {
  const { access, ask, calls, changes } = setUp();
  assert.equal(access.mayRead(GATEWAY), false);
  assert.equal(calls.length, 0);
  assert.equal(await ask(), true);
  assert.equal(changes(), 1);
  assert.deepEqual(calls[0]?.body, {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    spec: {
      user: "system:serviceaccount:istio-system:gateway",
      resourceAttributes: { namespace: "istio-system", verb: "list", resource: "secrets" },
    },
  });
  assert.equal(access.mayRead({ ...GATEWAY, serviceAccount: "other" }), false);
  assert.equal(access.mayRead({ ...GATEWAY, namespace: "other" }), false);
});

test("a right holds for five minutes, a refusal for one; what changed is told", async () => {
  const { world, ask, calls, changes } = setUp();
  await ask();
  world.allowed = false;
  world.now = 4.9 * MINUTE;
  assert.equal(await ask(), true);
  assert.equal(calls.length, 1);
  world.now = 5 * MINUTE;
  assert.equal(await ask(), false);
  assert.equal(changes(), 2);
  world.allowed = true;
  world.now = 5.9 * MINUTE;
  assert.equal(await ask(), false);
  world.now = 6 * MINUTE;
  assert.equal(await ask(), true);
  assert.equal(calls.length, 3);
});

test("questions at the same time are one", async () => {
  const { access, ask, calls } = setUp();
  access.ask(GATEWAY);
  access.ask(GATEWAY);
  await ask();
  assert.equal(calls.length, 1);
});

test("a server that is away gives and takes nothing; a missing right of ours is told with the rule", async () => {
  const { world, ask, lines, changes } = setUp();
  world.fails = new ApiError("forbidden", { status: 403, reason: "Forbidden" });
  assert.equal(await ask(), false);
  assert.match(lines.join(), /resources: \["subjectaccessreviews"\], verbs: \["create"\]/);
  world.fails = undefined;
  world.now = MINUTE;
  assert.equal(await ask(), true);
  world.fails = new Error("no answer");
  world.now = 10 * MINUTE;
  assert.equal(await ask(), true);
  assert.equal(changes(), 1);
});

test("accounts of another cluster are others, and those of no cluster of the mesh have no right", async () => {
  const { access, ask, calls } = setUp();
  assert.equal(await ask(), true);
  const stranger = { ...GATEWAY, clusterId: "c9" };
  access.ask(stranger);
  assert.equal(access.mayRead(stranger), false);
  assert.equal(calls.length, 1);
});
