import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createLogger } from "../log/log.ts";
import { KubernetesApi } from "./api-client.ts";
import { leadWhenElected } from "./leader-election.ts";

test("why an election waits is told once, however often it is tried", { timeout: 60_000 }, async () => {
  const statuses = [500, 500, 500, 503, 503];
  let requests = 0;
  const stopping = new AbortController();
  const server = createServer((_request, response) => {
    const status = statuses[requests++];
    if (status === undefined) stopping.abort();
    response.writeHead(status ?? 503).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const access = { server: `http://127.0.0.1:${port}`, namespace: "default", credentials: async () => ({}) };
  const api = new KubernetesApi(access);
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line) });
  const timing = { leaseMs: 1_500, renewLimitMs: 1_000, retryMs: 1 };
  const options = { api, namespace: "default", name: "leader", identity: "one", log, timing };
  await leadWhenElected(options, async () => assert.fail("elected"), stopping.signal);
  api.close();
  server.close();
  assert.deepEqual(
    lines.map((line) => /election of a leader waits.*HTTP status (\d+)/.exec(line)?.[1]),
    ["500", "503"],
  );
});
