/** Control planes come and go under a real Envoy that serves all the time. */
import assert from "node:assert/strict";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { AdsEnvoy, get, NO_ENVOY } from "../../support/ads-envoy.ts";
import { TestControlPlane } from "../../support/control-plane.ts";
import { freePort } from "../../support/free-ports.ts";

const ROUTER = {
  id: "router~127.0.0.1~gateway-1.istio-system~istio-system.svc.cluster.local",
  cluster: "gateway.istio-system",
  metadata: { NAMESPACE: "istio-system", INSTANCE_IPS: "127.0.0.1", LABELS: { istio: "ingressgateway" } },
};
const ROUNDS = 3;

/** A gateway on a port of this machine that leads to an app and says which version of the route it has. */
function mesh(port: number, app: number, version: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: in, namespace: default}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {number: ${port}, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ["*"]}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: app, namespace: default}
spec:
  hosts: [app.example.com]
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: ${app}}]
  resolution: STATIC
  endpoints: [{address: 127.0.0.1}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: app, namespace: default}
spec:
  hosts: ["*"]
  gateways: [in]
  http:
  - headers: {response: {set: {x-version: "${version}"}}}
    route: [{destination: {host: app.example.com}}]
`;
}

async function app(): Promise<{ readonly port: number } & Disposable> {
  const server = http.createServer((_, response) => response.end("ok"));
  server.keepAliveTimeout = 0; // it must not end a connection at the moment at which Envoy uses it again
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { port, [Symbol.dispose]: () => server.close().closeAllConnections() };
}

/** Calls one after the other until it is disposed of. */
class Calls implements AsyncDisposable {
  readonly failures: string[] = [];
  count = 0;
  version = "";
  #stopped = false;
  readonly #running: Promise<void>;

  constructor(port: number) {
    this.#running = this.#run(port);
  }

  async #run(port: number): Promise<void> {
    while (!this.#stopped) {
      const answer = await fetch(`http://127.0.0.1:${port}/`).catch((error: Error) => error);
      if (answer instanceof Error) this.failures.push(`${answer.message}: ${answer.cause}`);
      else if (answer.status !== 200) this.failures.push(`${answer.status}`);
      else this.version = answer.headers.get("x-version") ?? "";
      if (!(answer instanceof Error)) await answer.arrayBuffer();
      this.count++;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }
}

/** How often clusters and listeners of that Envoy came, changed and went. */
async function changesOf(envoy: AdsEnvoy): Promise<string> {
  const filter = "^(cluster_manager.cluster|listener_manager.listener)_(added|modified|removed)$";
  return (await get(envoy.socket("admin"), `/stats?filter=${encodeURIComponent(filter)}`)).body;
}

test("proxies move between replicas that come and go without a gap", { skip: NO_ENVOY }, async () => {
  using upstream = await app();
  const port = await freePort();
  const replica = async (version: string) => {
    const started = new TestControlPlane({ files: { "mesh.yaml": mesh(port, upstream.port, version) } });
    await started.ready();
    return { plane: started, address: await started.address("gRPC discovery service") };
  };
  let serving = await replica("0");
  await using envoy = await AdsEnvoy.start(serving.address, { node: ROUTER });
  try {
    // A listener that Envoy has may not be open yet.
    const answers = () => fetch(`http://127.0.0.1:${port}/`).then(({ ok }) => ok);
    await envoy.until("the gateway answers", () => answers().catch(() => false));
    await envoy.warmed();
    await using calls = new Calls(port);
    await envoy.until("calls are answered", async () => calls.version === "0");
    for (let round = 1; round <= ROUNDS; round++) {
      const before = await changesOf(envoy);
      const next = await replica(`${round - 1}`);
      envoy.relay.leadTo(next.address); // as a Service does with replicas that are not ready any more
      const stopping = serving.plane[Symbol.asyncDispose]();
      await next.plane.logged(/proxy connected/);
      serving = next;
      await stopping;
      next.plane.write("mesh.yaml", mesh(port, upstream.port, `${round}`));
      await envoy.until("the new replica pushes", async () => calls.version === `${round}`);
      await envoy.warmed();
      assert.equal(await changesOf(envoy), before, "what Envoy had was not sent again");
    }
    assert.deepEqual(calls.failures, []);
    assert.ok(calls.count > 20 * ROUNDS, `only ${calls.count} calls`);
  } finally {
    await serving.plane[Symbol.asyncDispose]();
  }
});
