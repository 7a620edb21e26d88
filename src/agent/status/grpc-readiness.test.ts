import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { grpcBootstrap } from "../bootstrap/grpc-bootstrap.ts";
import type { ProxyNode } from "../node.ts";
import { grpcBootstrapProblem } from "./grpc-readiness.ts";

const NODE = { id: "sidecar~1.2.3.4~a.b~c", metadata: {} } as ProxyNode;

test("grpcBootstrapProblem() names the file that is missing, until all are there", async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, "bootstrap.json");
  assert.match((await grpcBootstrapProblem(path)) ?? "", /^failed loading .*bootstrap\.json: .*ENOENT/);
  writeFileSync(path, "{");
  assert.match((await grpcBootstrapProblem(path)) ?? "", /^failed loading .*JSON/);
  writeFileSync(path, JSON.stringify(grpcBootstrap({ node: NODE, xdsSocketPath: "XDS", certificateFolder: folder })));
  for (const name of ["cert-chain.pem", "key.pem", "root-cert.pem"]) {
    assert.equal(await grpcBootstrapProblem(path), `${join(folder, name)} does not exist`);
    writeFileSync(join(folder, name), "");
  }
  assert.equal(await grpcBootstrapProblem(path), undefined);
});

test("grpcBootstrapProblem() wants no certificates of a bootstrap that names none", async (t) => {
  const path = join(temporaryFolder(t), "bootstrap.json");
  for (const bootstrap of [
    {},
    { certificate_providers: null },
    { certificate_providers: { a: { plugin_name: "x" } } },
  ]) {
    writeFileSync(path, JSON.stringify(bootstrap));
    assert.equal(await grpcBootstrapProblem(path), undefined);
  }
});
