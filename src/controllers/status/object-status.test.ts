import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { KubernetesApi } from "#lib/kubernetes/api-client.ts";
import { SILENT } from "#lib/log.ts";
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

/** How often the configuration is looked at before requests are counted. */
const LOOKS = 100;

/** So long a request takes, as looks: on a busy API server some come meanwhile. */
const LOOKS_MEANWHILE = 3;

test("a status that cannot be written is tried after longer and longer pauses, not at every look", async () => {
  let requests = 0;
  const open: { readonly since: number; readonly fail: () => void }[] = [];
  const server = createServer((_request, response) => {
    requests++;
    const fail = () => response.writeHead(500).end();
    if (looks < LOOKS) open.push({ since: looks, fail });
    else fail();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const access = { server: `http://127.0.0.1:${port}`, namespace: "default", credentials: async () => ({}) };
  const api = new KubernetesApi(access);
  const objects = objectsOf(GATEWAY);
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
  api.close();
  server.close();
  assert.ok(requests >= 1 && requests <= LOOKS / 10, `${requests} requests after ${looks} looks`);
});
