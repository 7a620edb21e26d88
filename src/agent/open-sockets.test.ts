import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { DEFAULT_PROXY_CONFIG } from "#config/proxy-config/proxy-config.ts";
import { createLogger } from "#lib/log/log.ts";
import { temporaryFolder } from "../../test/support/fake-control-plane.ts";
import { parseAgentConfig } from "./agent-config.ts";
import type { AgentContext } from "./agent-context.ts";
import { openSockets } from "./open-sockets.ts";
import { HERE } from "./place.ts";

const SOCKET = "var/run/secrets/workload-spiffe-uds/socket";

/** A workload in whose place for the SDS socket there is a file, and a clock that a test moves. */
function blocked(t: TestContext) {
  const folder = temporaryFolder(t);
  const socket = join(folder, SOCKET);
  mkdirSync(dirname(dirname(socket)), { recursive: true });
  writeFileSync(dirname(socket), "a file, not a folder");
  const lines: string[] = [];
  const end = new AbortController();
  t.after(() => end.abort());
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const needed: Pick<AgentContext, "config" | "proxyConfig" | "place" | "log" | "done" | "servedByOthers"> = {
    config: parseAgentConfig({}).config,
    proxyConfig: DEFAULT_PROXY_CONFIG,
    place: { ...HERE, folder },
    log: createLogger({ write: (line) => lines.push(line) }),
    done: end.signal,
    servedByOthers: false,
  };
  const told = async (text: string) => {
    while (!lines.some((line) => line.includes(text))) {
      t.mock.timers.tick(1_000);
      await new Promise(setImmediate);
    }
  };
  return { socket, lines, end, told, open: () => openSockets(needed as AgentContext) };
}

test("openSockets() does not wait for an SDS socket that cannot be had, which is served once it can", async (t) => {
  const { socket, lines, told, open } = blocked(t);
  const { sds } = await open();
  assert.ok(lines.some((line) => line.includes("SDS grpc server for workload proxies failed to set up UDS")));
  sds?.serve((connection) => connection.end("served"), assert.ifError);
  rmSync(dirname(socket));
  await told("SDS server for workload certificates started");
  const [answer] = await once(connect(socket), "data");
  assert.equal(String(answer), "served");
});

test("openSockets() gives up an SDS socket after five tries, and nothing else ends", async (t) => {
  const { lines, told, open } = blocked(t);
  const { sds } = await open();
  await told("SDS grpc server could not be started");
  assert.equal(lines.filter((line) => line.includes("failed to set up UDS")).length, 5);
  sds?.serve(() => assert.fail("nobody can connect"), assert.ifError);
  sds?.close();
});

test("openSockets() tries no more once the agent has ended", async (t) => {
  const { socket, lines, end, open } = blocked(t);
  const { sds } = await open();
  sds?.serve((connection) => connection.end(), assert.ifError);
  end.abort();
  rmSync(dirname(socket));
  for (let turn = 0; turn < 50; turn++) {
    t.mock.timers.tick(1_000);
    await new Promise(setImmediate);
  }
  assert.equal(lines.filter((line) => line.includes("failed to set up UDS")).length, 1);
  await assert.rejects(once(connect(socket), "connect"), { code: "ENOENT" });
});
