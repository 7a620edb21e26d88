/** Floods on the agent's ports. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { FloodedProcess } from "../../support/flooded-process.ts";
import { withstands } from "./flood-check.ts";
import { HTTP1_FLOODS } from "./http1-floods.ts";
import { HTTP2_FLOODS } from "./http2-floods.ts";

const PROGRAM = join(import.meta.dirname, "agent-listeners.ts");
const XDS = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
const PATIENCE_MS = 10_000;
/** Paths that answer, with their status. */
const LISTENERS = [
  { name: "15020", path: "/healthz/ready", status: 200 },
  { name: "sts", path: "/nothing", status: 404 },
  { name: "15004", path: "/nothing", status: 404 },
] as const;

describe("floods on the agent", () => {
  let agent: FloodedProcess;
  before(async () => {
    agent = await FloodedProcess.start({ args: [PROGRAM], cwd: process.cwd(), ready: /^ready$/m });
  });
  after(() => agent[Symbol.asyncDispose]());

  const portOf = (name: string) => agent.port(new RegExp(`^${name} at (\\d+)$`, "m"));
  const probe = () => `http://127.0.0.1:${portOf("15020")}/healthz/ready`;

  async function isServed(name: string, path: string, status: number): Promise<void> {
    const url = `http://127.0.0.1:${portOf(name)}${path}`;
    const response = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS), headers: { connection: "close" } });
    await response.arrayBuffer();
    assert.equal(response.status, status, url);
  }

  for (const { name, path, status } of LISTENERS) {
    const check = () => ({ process: agent, probe: probe(), isServed: () => isServed(name, path, status) });
    for (const flood of HTTP1_FLOODS) {
      test(`${name} withstands ${flood.name}`, () =>
        withstands(check(), (endAt) => flood.run({ port: portOf(name), isTls: false }, path, endAt)));
    }
    if (name !== "15004") continue;
    for (const flood of HTTP2_FLOODS) {
      test(`${name} withstands ${flood.name} on HTTP/2`, () =>
        withstands(check(), (endAt) => flood.run({ port: portOf(name), isTls: false }, XDS, endAt)));
    }
  }
});
