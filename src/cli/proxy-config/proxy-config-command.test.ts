import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { proxyStatusCommand } from "../proxy-status/proxy-status-command.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { proxyConfigCommand } from "./proxy-config-command.ts";

const CLUSTERS = {
  "@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump",
  dynamic_active_clusters: [
    { cluster: { "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", name: "outbound|80||web" } },
  ],
};

describe("commands about proxies", () => {
  let folder: string;
  let printed = "";
  let said = "";
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "mizzen-proxy-config-"));
    writeFileSync(join(folder, "dump.json"), JSON.stringify({ configs: [CLUSTERS] }));
  });
  after(() => rmSync(folder, { recursive: true }));

  async function run(make: typeof proxyConfigCommand, ...args: readonly string[]): Promise<number> {
    printed = "";
    said = "";
    process.exitCode = 0;
    const terminal: Pick<Terminal, "print" | "say"> = {
      print: (text) => {
        printed += text;
      },
      say: (line) => {
        said += `${line}\n`;
      },
    };
    await make(terminal as Terminal)
      .exitOverride()
      .parseAsync([...args], { from: "user" });
    const code = Number(process.exitCode);
    process.exitCode = 0;
    return code;
  }
  const config = (...args: readonly string[]) => run(proxyConfigCommand, ...args);
  const status = (...args: readonly string[]) => run(proxyStatusCommand, ...args);
  const dump = () => join(folder, "dump.json");

  test("proxy-config reads a dump from a file, under istioctl's names for each page", async () => {
    for (const name of ["cluster", "clusters", "c"]) {
      assert.equal(await config(name, "--file", dump()), 0, said);
      assert.match(printed, /^web +80 +- +outbound +STATIC/m);
    }
    assert.equal(await config("c", "-f", dump(), "--port", "81"), 0);
    assert.doesNotMatch(printed, /web/);
    await config("all", "-f", dump(), "-o", "json");
    assert.equal(JSON.parse(printed).configs.length, 1);
    await config("c", "-f", dump(), "-o", "yaml");
    assert.equal(printed, "- name: outbound|80||web\n");
  });

  test("proxy-config says what is wrong", async () => {
    assert.equal(await config("cluster"), 2);
    assert.match(said, /needs the name of a workload, or --file/);
    assert.equal(await config("cluster", "web", "--file", dump()), 2);
    assert.equal(await config("cluster", "--file", join(folder, "none")), 2);
    assert.equal(await config("route", "--file", dump()), 2);
    assert.match(said, /no RoutesConfigDump/);
    writeFileSync(join(folder, "bad.json"), "{");
    assert.equal(await config("route", "--file", join(folder, "bad.json")), 2);
    assert.match(said, /as JSON/);
    assert.equal(await config("log", "web", "--level", "x", "--reset"), 2);
    assert.equal(await config("log"), 2);
    assert.match(said, /log needs the name of a workload, or --selector/);
    assert.equal(await config("log", "web", "-l", "app=web"), 2);
    assert.equal(await config("log", "--selector", "app=web,a b"), 2);
    assert.match(said, /cannot read "a b"/);
    await assert.rejects(config("cluster", "-f", dump(), "-o", "xml"), /Allowed choices/);
    await assert.rejects(config("cluster", "-f", dump(), "--port", "x"), /not a number/);
  });

  test("proxy-status asks a control plane, and compares what a proxy has", async () => {
    const server = createServer(({ url = "" }, response) => {
      const rows = [{ proxy: "web.prod", resources: { "x/y": { sent: "1", acked: "1" } } }, { proxy: "a.dev" }];
      if (url.startsWith("/debug/syncz")) response.end(JSON.stringify(rows));
      else if (url === "/debug/config_dump?proxyID=web.prod") response.end(JSON.stringify({ configs: [CLUSTERS] }));
      else response.writeHead(404).end("no such proxy");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      assert.equal(await status("--address", address), 0, said);
      assert.match(printed, /^a\.dev .*\nweb\.prod +istiod +1 \(x\/y\)$/m);
      await status("--address", address, "-n", "prod", "-o", "json");
      assert.deepEqual(
        JSON.parse(printed).map(({ types }: { types: object }) => types),
        [{ "x/y": "SYNCED" }],
      );
      assert.equal(await status("web.prod", "--address", address, "--file", dump()), 0, said);
      assert.match(printed, /^Clusters Match$/m);
      assert.equal(await status("nobody.prod", "--address", address, "--file", dump()), 1);
      assert.match(said, /status 404: no such proxy/);
    } finally {
      server.closeAllConnections();
      server.close();
    }
    assert.equal(await status("--address", address), 1);
  });
});
