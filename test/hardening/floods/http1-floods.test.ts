/** Floods on the HTTP/1 ports of the control plane. */
import assert from "node:assert/strict";
import { Agent, get as getHttps } from "node:https";
import { after, before, describe, test } from "node:test";
import { type ControlPlanePort, FloodedControlPlane } from "./control-plane-process.ts";
import { withstands } from "./flood-check.ts";
import { HTTP1_FLOODS } from "./http1-floods.ts";

interface Listener {
  readonly port: ControlPlanePort;
  readonly isTls: boolean;
  /** Answers everybody with 200. */
  readonly path: string;
  /** Flooded; the most expensive one that needs no authentication. */
  readonly floodedPath: string;
}

const LISTENERS: readonly Listener[] = [
  { port: "8080", isTls: false, path: "/ready", floodedPath: "/debug" },
  { port: "15014", isTls: false, path: "/version", floodedPath: "/metrics" },
  { port: "15017", isTls: true, path: "/httpsReady", floodedPath: "/inject" },
  { port: "9876", isTls: false, path: "/", floodedPath: "/scopej/" },
];
const PATIENCE_MS = 10_000;

describe("floods on HTTP/1", () => {
  let controlPlane: FloodedControlPlane;
  before(async () => {
    controlPlane = await FloodedControlPlane.start();
  });
  after(() => controlPlane[Symbol.asyncDispose]());

  async function isServed({ port, isTls, path }: Listener): Promise<void> {
    const url = `${isTls ? "https" : "http"}://127.0.0.1:${controlPlane.port(port)}${path}`;
    const status = isTls ? await tlsStatus(url) : await plainStatus(url);
    assert.equal(status, 200, url);
    await controlPlane.servesTls();
  }

  for (const listener of LISTENERS) {
    for (const flood of HTTP1_FLOODS) {
      test(`${listener.port} withstands ${flood.name}`, async () => {
        const { process, probe } = controlPlane;
        const check = { process, probe, isServed: () => isServed(listener) };
        const target = {
          port: controlPlane.port(listener.port),
          isTls: listener.isTls,
          protocol: "http/1.1",
        } as const;
        await withstands(check, (endAt) => flood.run(target, listener.floodedPath, endAt));
      });
    }
  }
});

async function plainStatus(url: string): Promise<number> {
  const response = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS), headers: { connection: "close" } });
  await response.arrayBuffer();
  return response.status;
}

function tlsStatus(url: string): Promise<number> {
  const options = { agent: new Agent({ rejectUnauthorized: false }), timeout: PATIENCE_MS };
  return new Promise((resolve, reject) => {
    getHttps(url, options, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    }).on("error", reject);
  });
}
