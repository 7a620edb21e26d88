/** HTTP callers that ask for debug pages and do not read them. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { addDebugRoutes } from "#debug/routes.ts";
import { SILENT } from "#lib/log/log.ts";
import { HttpListener } from "#lib/net/http-listener.ts";
import { ByteBudget } from "#xds/stream/byte-budget.ts";
import { meshOf } from "../../test/support/mesh.ts";

const MEGABYTE = 1_048_576;
/** More than the kernel keeps for a caller that does not read. */
const PAGE_BYTES = 16 * MEGABYTE;

test("pages for callers that do not read are not made, and others get theirs when those leave", async () => {
  let made = 0;
  const budget = new ByteBudget(2 * MEGABYTE);
  const routes: ConstructorParameters<typeof HttpListener>[0]["routes"] = (app) =>
    addDebugRoutes(app, {
      source: { current: () => meshOf(""), objects: () => [] },
      connections: () => [],
      pushes: { changes: () => [], pushes: () => [] },
      held: () => ({ parts: 0, resources: 0 }),
      templates: () => {
        made++;
        return { sidecar: "x".repeat(PAGE_BYTES) };
      },
      authenticate: async () => ({ refused: "nobody" }),
      seesAll: () => true,
      log: SILENT,
      budget,
    });
  const listener = new HttpListener({ flag: "test", address: { host: "127.0.0.1", port: 0 }, routes });
  const address = await listener.start();
  try {
    const port = Number(address.split(":").at(-1));
    const silent = Array.from({ length: 20 }, () => connect(port, "127.0.0.1"));
    await Promise.all(silent.map((socket) => once(socket, "connect")));
    for (const socket of silent) socket.pause().write("GET /debug/inject HTTP/1.1\r\nHost: localhost\r\n\r\n");
    while (made < 1) await new Promise((resolve) => setImmediate(resolve));
    const other = fetch(`http://${address}/debug/inject`);
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(made <= 2, `${made} pages were made for callers that read none`);
    for (const socket of silent) socket.destroy();
    assert.equal((await (await other).text()).length > PAGE_BYTES, true);
    while (budget.used > 0) await new Promise((resolve) => setImmediate(resolve));
  } finally {
    await listener.stop(0);
  }
});
