import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Command } from "commander";
import { createLogger } from "#lib/log/log.ts";
import { ControlPlane } from "./control-plane.ts";
import { flagDefaults, parseDiscoveryConfig } from "./settings/config.ts";
import { addFlags, flagsOf } from "./settings/flags.ts";

const LISTENERS = ["httpAddr", "httpsAddr", "grpcAddr", "secureGRPCAddr", "monitoringAddr"];
const POD = { metadata: { name: "p" }, spec: { containers: [{ name: "app" }] } };

describe("webhooks of the control plane", () => {
  let folder: string;
  const stopping = new AbortController();
  let running: Promise<void>;
  const lines: string[] = [];

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "webhooks-"));
    writeFileSync(join(folder, "mesh"), "trustDomain: td1\n");
    const free = LISTENERS.map((name) => `--${name}=127.0.0.1:0`);
    const flags = [
      "--registries=",
      "--configDir",
      folder,
      "--meshConfig",
      join(folder, "mesh"),
      "--ctrlz_port=0",
      ...free,
    ];
    const defaults = flagDefaults({});
    const command = new Command();
    addFlags(command, defaults);
    command.parse(flags, { from: "user" });
    const { config, problems } = parseDiscoveryConfig(flagsOf(command, defaults), {
      ROOT_CA_DIR: join(folder, "ca"),
      REVISION: "r1",
    });
    assert.deepEqual(problems, []);
    const log = createLogger({ write: (line) => lines.push(line) });
    running = new ControlPlane(config, log).run(stopping.signal);
    while (!lines.some((line) => line.includes("control plane is ready"))) {
      await Promise.race([running, new Promise((resolve) => setTimeout(resolve, 5))]);
    }
  });
  after(async () => {
    stopping.abort();
    await running;
    rmSync(folder, { recursive: true });
  });

  const portOf = (service: string) =>
    Number(lines.map((line) => new RegExp(`starting ${service} at \\S*:(\\d+)`).exec(line)?.[1]).find(Boolean));

  function ask(
    path: string,
    asked: object,
  ): Promise<{ response: { allowed: boolean; patch?: string; status?: { message: string } } }> {
    const review = { kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", request: { uid: "u", ...asked } };
    const options = {
      host: "127.0.0.1",
      port: portOf("webhook service"),
      path,
      method: "POST",
      headers: { "content-type": "application/json" },
      ca: readFileSync(join(folder, "ca/root-cert.pem")),
      servername: "istiod-r1.istio-system.svc",
    };
    return new Promise((resolve, reject) => {
      const sent = request(options, async (answer) => {
        const chunks = await answer.toArray();
        resolve(JSON.parse(Buffer.concat(chunks).toString()));
      });
      sent.on("error", reject);
      sent.end(JSON.stringify(review));
    });
  }

  test("inject pods with the mesh's own settings, under a certificate of the CA", async () => {
    const { response } = await ask("/inject", { namespace: "ns", object: POD });
    const patch = Buffer.from(response.patch ?? "", "base64").toString();
    assert.match(patch, /"TRUST_DOMAIN","value":"td1"/);
    assert.match(patch, /"istio\.io\/rev":"r1"/);
  });

  test("refuse objects that are wrong", async () => {
    const object = {
      apiVersion: "networking.istio.io/v1",
      kind: "Gateway",
      metadata: { name: "g" },
      spec: { servers: [{}] },
    };
    const { response } = await ask("/validate", { operation: "CREATE", object });
    assert.equal(response.allowed, false);
    assert.match(response.status?.message ?? "", /^configuration is invalid: spec\.servers/);
  });

  test("show the templates they use", async () => {
    const answer = await fetch(`http://127.0.0.1:${portOf("monitoring service")}/debug/inject`);
    const templates = (await answer.json()) as Record<string, string>;
    assert.match(templates.sidecar ?? "", /istio-proxy/);
  });

  test("are counted under Istio's names", async () => {
    const text = await (await fetch(`http://127.0.0.1:${portOf("monitoring service")}/metrics`)).text();
    assert.match(text, /^sidecar_injection_success_total 1$/m);
    assert.match(text, /^sidecar_injection_time_seconds_count 1$/m);
    assert.match(text, /^galley_validation_failed\{.*reason="invalid_resource"\} 1$/m);
  });
});
