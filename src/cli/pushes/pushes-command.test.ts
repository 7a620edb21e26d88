import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { keptTerminal } from "../../../test/support/install-terminal.ts";
import { pushesCommand } from "./pushes-command.ts";

test("pushes asks the control plane at an address", async () => {
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.end(JSON.stringify({ changes: [] }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const terminal = keptTerminal({});
  try {
    const args = ["--address", `127.0.0.1:${port}`, "--proxy", "web.shop", "-o", "json"];
    await pushesCommand(terminal).parseAsync(args, { from: "user" });
  } finally {
    server.close();
    server.closeAllConnections();
  }
  assert.deepEqual(asked, ["/debug/pushes?proxyID=web.shop"]);
  assert.deepEqual(JSON.parse(terminal.ended().stdout), { changes: [] });
});
