import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { KubernetesApi } from "#lib/kubernetes/api-client.ts";
import { PatientApi } from "./patient-api.ts";

/** Answers with these codes, one after another, and with the last from then on. */
async function answering(codes: readonly number[]) {
  let asked = 0;
  const server = createServer((_, response) => {
    const code = codes[Math.min(asked++, codes.length - 1)] ?? 200;
    if (code === 0) response.destroy();
    else response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify({ code }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const access = { server: `http://127.0.0.1:${port}`, namespace: "default", credentials: async () => ({}) };
  const api = new KubernetesApi(access);
  const said: string[] = [];
  return {
    patient: new PatientApi({ api, say: (line) => said.push(line), patienceMs: 2_000 }),
    said,
    asked: () => asked,
    [Symbol.dispose]: () => {
      api.close();
      server.close();
      server.closeAllConnections();
    },
  };
}

test("a server that was there and goes away for a while is waited for, and that is said once", async () => {
  using server = await answering([200, 0, 503, 429, 200]);
  await server.patient.call({ path: "/" });
  await server.patient.call({ path: "/" });
  assert.equal(server.asked(), 5);
  assert.equal(server.said.length, 1);
  assert.match(server.said[0] ?? "", /^trying again: /);
});

test("a server that never answered is not waited for", async () => {
  using server = await answering([0]);
  await assert.rejects(server.patient.call({ path: "/" }), { code: "KUBE_API_UNREACHABLE" });
  assert.equal(server.asked(), 1);
});

test("a refusal is final", async () => {
  using server = await answering([200, 403]);
  await server.patient.call({ path: "/" });
  await assert.rejects(server.patient.call({ path: "/" }), { code: "KUBE_API_REFUSED" });
  assert.equal(server.asked(), 2);
});
