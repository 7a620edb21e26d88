import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { keptTerminal } from "../../../test/support/install-terminal.ts";
import { proxyStatusCommand } from "./proxy-status-command.ts";

const CLUSTERS = { "@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump" };
const LISTENERS = { "@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump" };
const ROUTES = { "@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump" };
const DUMP = JSON.stringify({ configs: [CLUSTERS, LISTENERS, ROUTES] });

test("proxy-status of a config dump asks a control plane for the proxy by name and namespace", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-status-"));
  const file = join(folder, "dump.json");
  writeFileSync(file, DUMP);
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.end(DUMP);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const terminal = keptTerminal({});
  try {
    for (const name of [["web.shop"], ["pod/web", "-n", "shop"], ["web", "-n", "shop"]]) {
      const args = [...name, "--address", `127.0.0.1:${port}`, "--file", file];
      await proxyStatusCommand(terminal).parseAsync(args, { from: "user" });
    }
  } finally {
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true });
  }
  assert.deepEqual(asked, Array(3).fill("/debug/config_dump?proxyID=web.shop"));
  assert.match(terminal.ended().stdout, /^Clusters Match$/m);
});
