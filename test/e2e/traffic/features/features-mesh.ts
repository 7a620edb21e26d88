/** The mesh of this folder, with certificates made for this run, and how its tests speak to it. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type RunningMesh, scratchFolder, upMesh } from "../../../support/mesh-run.ts";

export interface Echo {
  readonly pod: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls?: { readonly serverName: string | false; readonly client?: string; readonly trusted: boolean };
}

export interface FeaturesMesh extends AsyncDisposable {
  readonly mesh: RunningMesh;
  readonly folder: string;
  /** Where `echo-3` listens besides; another one in each mesh, for several may be up. */
  readonly socket: string;
  /** Applies objects for the time of the block. */
  with(...objects: readonly object[]): Promise<AsyncDisposable>;
  /** The status of a call by the client. */
  status(url: string, ...args: readonly string[]): Promise<number>;
  /** What the app that answered a call by the client was asked. */
  echo(url: string, ...args: readonly string[]): Promise<Echo>;
  /** How many of these calls each pod answered; what is no answer of a pod is counted by its status. */
  pods(calls: number, url: string, ...args: readonly string[]): Promise<ReadonlyMap<string, number>>;
}

/** Starts it. */
export async function upFeatures(): Promise<FeaturesMesh> {
  const folder = await scratchFolder("test/e2e/traffic/features");
  makeCertificates(join(folder.path, "certificates"));
  const socket = `/tmp/${basename(folder.path)}.sock`;
  const meshFile = join(folder.path, "mesh.yaml");
  writeFileSync(meshFile, readFileSync(meshFile, "utf8").replace("/tmp/features-echo-3.sock", socket));
  const mesh = await upMesh(folder.path);
  return {
    mesh,
    folder: folder.path,
    socket,
    async with(...objects) {
      const running = await mesh.mesh();
      await running.apply(objects);
      return { [Symbol.asyncDispose]: async () => void (await running.delete(objects)) };
    },
    status: async (url, ...args) => (await mesh.curl("client", url, args)).status,
    async echo(url, ...args) {
      const { status, body } = await mesh.curl("client", url, args);
      assert.equal(status, 200, `${url}: ${body}`);
      return JSON.parse(body) as Echo;
    },
    async pods(calls, url, ...args) {
      const form = ["-o", "/dev/null", "-w", "%header{x-pod}/%{http_code}\\n", "-m", "10"];
      const address = `${url}${url.includes("?") ? "&" : "?"}n=[1-${calls}]`;
      const { stdout } = await mesh.exec("client", ["curl", "-sS", ...form, ...args, address]);
      const counts = new Map<string, number>();
      for (const line of stdout.trim().split("\n")) {
        const [pod = "", status = ""] = line.split("/");
        const key = status === "200" ? pod : status;
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
      return counts;
    },
    async [Symbol.asyncDispose]() {
      await mesh[Symbol.asyncDispose]();
      rmSync(socket, { force: true });
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** An object of the networking API. */
export function networking(kind: string, name: string, spec: object, namespace = "default"): object {
  return { apiVersion: "networking.istio.io/v1", kind, metadata: { name, namespace }, spec };
}

/** A root, and what it signed: `outside` for the server outside of the mesh, `shop` and `bank` for gateways, `client` for callers. */
function makeCertificates(folder: string): void {
  mkdirSync(folder);
  const openssl = (...args: readonly string[]) => execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  openssl("req", "-x509", ...key, "-subj", "/CN=root", "-keyout", "ca.key", "-out", "ca.crt");
  for (const [name, host] of Object.entries({
    outside: "outside.example.com",
    shop: "shop.example.com",
    bank: "bank.example.com",
    client: "client.example.com",
  })) {
    const signer = ["-CA", "ca.crt", "-CAkey", "ca.key", "-addext", `subjectAltName=DNS:${host}`];
    openssl("req", "-x509", ...key, ...signer, "-subj", `/CN=${host}`, "-keyout", `${name}.key`, "-out", `${name}.crt`);
  }
  execFileSync("chmod", ["-R", "a+rX", folder]);
}
