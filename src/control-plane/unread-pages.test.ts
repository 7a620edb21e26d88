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
        return { sidecar: "x".repeat(MEGABYTE) };
      },
      authenticate: async () => ({ refused: "nobody" }),
      seesAll: () => true,
      log: SILENT,
      budget,
    });
  const listener = new HttpListener({ flag: "test", address: { host: "127.0.0.1", port: 0 }, routes });
  const address = await listener.start();
  try {
    const socket = connect(Number(address.split(":").at(-1)), "127.0.0.1");
    await once(socket, "connect");
    socket.pause();
    socket.write("GET /debug/inject HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1_000));
    while (made < 2) await new Promise((resolve) => setImmediate(resolve));
    const other = fetch(`http://${address}/debug/inject`);
    // The kernel has room for some of them.
    assert.ok(made <= 40, `${made} pages of 1 MB were made for a caller that read none`);
    socket.destroy();
    assert.equal((await (await other).text()).length > MEGABYTE, true);
    while (budget.used > 0) await new Promise((resolve) => setImmediate(resolve));
  } finally {
    await listener.stop(0);
  }
});
