/** The way out, with a machine and a world of its own. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test, { type TestContext } from "node:test";
import { errorText } from "#lib/mesh-error.ts";
import { eventually } from "../../../test/support/fake-control-plane.ts";
import { machineLab } from "../../../test/support/machine-lab.ts";
import { meshFolder } from "../../../test/support/mesh-folder.ts";
import { MIZZEN, meshUnavailable } from "../../../test/support/mesh-run.ts";
import type { MeshStatus } from "../status/status.ts";

const SPEC = `
  meshConfig: {accessLogFile: /dev/stdout, outboundTrafficPolicy: {mode: REGISTRY_ONLY}}
  workloads:
  - {name: sleep, labels: {app: sleep}, command: [sleep, infinity]}
  - {name: plain, inject: false, command: [sleep, infinity]}
  gateways:
  - {name: istio-egressgateway, labels: {istio: egressgateway}, ports: [8080]}
`;
const CONFIG = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: api}
spec:
  hosts: [api.example.test, gate.example.test]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: DNS
  location: MESH_EXTERNAL
---
apiVersion: v1
kind: Service
metadata: {name: istio-egressgateway, namespace: istio-system}
spec: {selector: {istio: egressgateway}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: out}
spec:
  selector: {istio: egressgateway}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [gate.example.test]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: out}
spec:
  hosts: [gate.example.test]
  gateways: [mesh, out]
  http:
  - match: [{gateways: [mesh]}]
    route: [{destination: {host: istio-egressgateway.istio-system.svc.cluster.local, port: {number: 80}}}]
  - match: [{gateways: [out]}]
    route: [{destination: {host: gate.example.test, port: {number: 80}}}]
`;

/** How curl ends for a name that nobody has. */
const UNRESOLVED = /exit 6: /;

test("--egress", { skip: meshUnavailable() }, async (t: TestContext) => {
  await using folder = await meshFolder(SPEC);
  await folder.add("outside.yaml", CONFIG);
  await using machine = await machineLab(folder.root);
  const mizzen = (command: string, ...args: readonly string[]) =>
    machine.run(MIZZEN, command, "--state", folder.state, ...args);
  const curl = (workload: string, ...args: readonly string[]) =>
    mizzen("exec", workload, "--", "curl", "-s", "-m", "10", "-w", " %{http_code}", ...args).catch(errorText);
  const status = async (): Promise<MeshStatus> => JSON.parse(await mizzen("ps", "-o", "json"));
  const before = await machine.state();

  await t.test("one cable and one table appear on the machine", async () => {
    await mizzen("up", folder.path, "--detach", "--egress");
    const during = await machine.state();
    const { id, egress } = await status();
    assert.equal(egress, true);
    assert.ok(during.includes(`mze-${id}`) && during.includes(`table ip mizzen_${id} {`), during);
    assert.equal(during.match(/masquerade/g)?.length, 1);
  });

  await t.test("a workload without a sidecar reaches the outside by address and by name", async () => {
    assert.equal(await curl("plain", "http://203.0.113.2/"), "outside sees 203.0.113.1 200");
    assert.equal(await curl("plain", "http://any.example.test/"), "outside sees 203.0.113.1 200");
    assert.match(await curl("plain", "http://no.example.test/"), UNRESOLVED);
  });

  await t.test("with a sidecar and REGISTRY_ONLY it reaches what a ServiceEntry names, and nothing else", async () => {
    assert.equal(await curl("sleep", "http://api.example.test/"), "outside sees 203.0.113.1 200");
    assert.equal(await curl("sleep", "http://other.example.test/"), " 502");
  });

  await t.test("an egress gateway is on the way when routes say so", async () => {
    assert.equal(await curl("sleep", "http://gate.example.test/gated"), "outside sees 203.0.113.1 200");
    await eventually("the gateway logs it", async () =>
      /"GET \/gated HTTP/.test(await mizzen("logs", "istio-egressgateway", "--proxy")),
    );
  });

  await t.test("down takes all of it back", async () => {
    await mizzen("down");
    assert.equal(await machine.state(), before);
  });

  await t.test("so it does after a crash", async () => {
    await mizzen("up", folder.path, "--detach", "--egress");
    const { runner } = await status();
    process.kill(runner.pid, "SIGKILL");
    await mizzen("down");
    assert.equal(await machine.state(), before);
    await assert.rejects(readFile("/run/mizzen/forwarding", "utf8"), { code: "ENOENT" });
  });

  await t.test("without it the outside is out of reach, and ps says how to get there", async () => {
    await mizzen("up", folder.path, "--detach");
    assert.equal(await machine.state(), before, "nothing of the machine is changed");
    assert.match(await curl("plain", "http://any.example.test/"), UNRESOLVED);
    const { egress, notes } = await status();
    assert.equal(egress, false);
    assert.deepEqual(
      notes.filter((note) => note.startsWith("plain ")),
      [
        "plain asked for any.example.test, but this mesh has no way out: take it down and start it with `mizzen up --egress`",
      ],
    );
    await assert.rejects(mizzen("up", folder.path, "--detach", "--egress"), (error: Error) => {
      assert.match(String(error.cause), /Cannot give mesh ".*" a way out while it is up; run `mizzen down/);
      return true;
    });
    await mizzen("down");
  });
});
