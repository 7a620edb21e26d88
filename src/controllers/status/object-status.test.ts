import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { test } from "node:test";
import { KubernetesApi } from "#lib/kubernetes/api-client.ts";
import { SILENT } from "#lib/log/log.ts";
import type { Source } from "#model/ports.ts";
import { objectsOf } from "../../../test/support/mesh.ts";
import { keepObjectStatus } from "./object-status.ts";

const GATEWAYS = {
  group: "networking.istio.io",
  version: "v1",
  kind: "Gateway",
  plural: "gateways",
  namespaced: true,
};
const GATEWAY = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: gw, namespace: shop}
spec: {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
`;

const objects = objectsOf(GATEWAY);

/** An API server that does what the listener says. */
async function serveApi(listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const access = { server: `http://127.0.0.1:${port}`, namespace: "default", credentials: async () => ({}) };
  const api = new KubernetesApi(access);
  return {
    api,
    close: () => {
      api.close();
      server.close();
    },
  };
}

/** How often the configuration is looked at before requests are counted. */
const LOOKS = 100;

/** So long a request takes, as looks: on a busy API server some come meanwhile. */
const LOOKS_MEANWHILE = 3;

test("a status that cannot be written is tried after longer and longer pauses, not at every look", async () => {
  let requests = 0;
  const open: { readonly since: number; readonly fail: () => void }[] = [];
  const { api, close } = await serveApi((_request, response) => {
    requests++;
    const fail = () => response.writeHead(500).end();
    if (looks < LOOKS) open.push({ since: looks, fail });
    else fail();
  });
  const lookedAt = Promise.withResolvers<void>();
  let looks = 0;
  const look = () => {
    if (++looks === LOOKS) lookedAt.resolve();
    while (open[0] !== undefined && (looks - open[0].since >= LOOKS_MEANWHILE || looks >= LOOKS)) open.shift()?.fail();
    return objects;
  };
  const source = { problems: () => [], objects: look } as unknown as Source;
  const stopping = new AbortController();
  const options = { api, source, types: [GATEWAYS], conflicts: () => [], findings: () => new Map(), now: Date.now };
  const running = keepObjectStatus({ ...options, log: SILENT, intervalMs: 5 }, stopping.signal);
  await lookedAt.promise;
  stopping.abort();
  await running;
  close();
  assert.ok(requests >= 1 && requests <= LOOKS / 10, `${requests} requests after ${looks} looks`);
});

test("what somebody else writes between reading a status and writing it is not lost", async () => {
  let resourceVersion = "1";
  let conditions: readonly { readonly type: string }[] = [];
  const written = Promise.withResolvers<void>();
  const { api, close } = await serveApi(async (request, response) => {
    if (request.method === "GET") {
      response.end(JSON.stringify({ metadata: { resourceVersion, generation: 1 }, status: { conditions } }));
      if (resourceVersion === "1") [resourceVersion, conditions] = ["2", [{ type: "Healthy" }]];
      return;
    }
    const { metadata = {}, status } = (await json(request)) as { metadata?: object; status: { conditions: [] } };
    if ("resourceVersion" in metadata && metadata.resourceVersion !== resourceVersion)
      return void response.writeHead(409).end("{}");
    conditions = status.conditions;
    response.end("{}");
    written.resolve();
  });
  const source = { problems: () => [], objects: () => objects } as unknown as Source;
  const stopping = new AbortController();
  const distribution = () => ({ proxies: 1, lags: {} });
  const options = { api, source, types: [GATEWAYS], conflicts: () => [], distribution, now: Date.now };
  const running = keepObjectStatus({ ...options, log: SILENT, intervalMs: 5 }, stopping.signal);
  await written.promise;
  stopping.abort();
  await running;
  close();
  assert.deepEqual(
    conditions.map(({ type }) => type),
    ["Healthy", "Reconciled"],
  );
});
