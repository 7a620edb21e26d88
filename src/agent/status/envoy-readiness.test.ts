import assert from "node:assert/strict";
import { test } from "node:test";
import { MeshError } from "#lib/mesh-error.ts";
import { EnvoyReadiness, serverProblem } from "./envoy-readiness.ts";

const CONFIGURED = "cluster_manager.cds.update_success: 1\nlistener_manager.lds.update_success: 1\n";
const SERVING = "server.state: 0\nlistener_manager.workers_started: 1\n";

function probe(answers: string[]) {
  let asked = 0;
  const stats = async () => {
    asked++;
    const answer = answers.shift();
    if (answer === undefined) throw new MeshError("X", "refused");
    return answer;
  };
  const readiness = new EnvoyReadiness({ stats, drainListeners: async () => undefined });
  return { readiness, asked: () => asked };
}

test("EnvoyReadiness asks until Envoy is configured and serving, and then no more", async () => {
  const { readiness, asked } = probe(["", `${CONFIGURED}server.state: 2`, CONFIGURED + SERVING]);
  assert.match((await readiness.problem()) ?? "", /^config not received from XDS server/);
  assert.equal(await readiness.problem(), "server is not live, current state is: PRE_INITIALIZING");
  assert.equal(await readiness.problem(), undefined);
  assert.equal(await readiness.problem(), undefined);
  assert.equal(asked(), 3);
});

test("EnvoyReadiness is not ready while Envoy does not answer", async () => {
  assert.equal(await probe([]).readiness.problem(), "refused");
});

test("serverProblem() wants both statistics", () => {
  assert.equal(serverProblem(""), "server.state is not yet updated");
  assert.equal(serverProblem("server.state: 0"), "workers have not yet started");
  assert.equal(
    serverProblem("server.state: 9\nlistener_manager.workers_started: 1"),
    "server is not live, current state is: UNKNOWN",
  );
});
