/** A real istiod in the place of a mesh's control plane: the same proxies with the certificates they have, the same objects. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { BenchMesh } from "./mesh-process.ts";

const PATIENCE_MS = 60_000;

export class RealIstiod implements AsyncDisposable {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Resolves when all proxies of the mesh have its configuration. */
  static async inPlaceOf(mesh: BenchMesh, program: string): Promise<RealIstiod> {
    const { shell } = await mesh.member("istiod");
    const work = await prepare(mesh);
    const proxies = (await mesh.status()).members.filter(({ proxy }) => proxy !== undefined).length;
    await mesh.change("stop", "istiod");
    const config = join(work, "config");
    const flags = ["--registries=", "--configDir", config, "--meshConfig", join(work, "mesh"), "--httpsAddr="];
    const env = {
      PATH: process.env.PATH,
      POD_NAME: "istiod",
      POD_NAMESPACE: "istio-system",
      // It takes no tokens that are signed as ours are.
      XDS_AUTH: "false",
    };
    const argv = [`--net=${join("/run/netns", shell.place.netns)}`, "--", program, "discovery", ...flags];
    const istiod = new RealIstiod(spawn("nsenter", argv, { cwd: work, env, stdio: ["ignore", "pipe", "pipe"] }));
    try {
      await istiod.#untilPushed(proxies);
    } catch (error) {
      await istiod[Symbol.asyncDispose]();
      throw error;
    }
    return istiod;
  }

  async #untilPushed(proxies: number): Promise<void> {
    const served = new Set<string>();
    let said = "";
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (chunk: string) => {
        said = (said + chunk).slice(-20_000);
        for (const match of chunk.matchAll(/LDS: PUSH\S* .*?node:(\S+)/g)) served.add(match[1] ?? "");
      });
    }
    const deadline = performance.now() + PATIENCE_MS;
    while (served.size < proxies) {
      if (this.#child.exitCode !== null || performance.now() > deadline) {
        throw new Error(`istiod served ${[...served].join(", ") || "nobody"}:\n${said.slice(-2000)}`);
      }
      await delay(100);
    }
    // What comes with the listeners is acknowledged a moment later.
    await delay(2000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }
}

/** Objects and authority as istiod wants to find them. */
async function prepare(mesh: BenchMesh): Promise<string> {
  const work = join(mesh.state, "..", "istiod");
  const config = join(work, "config");
  await mkdir(config, { recursive: true });
  await copyFile(join(mesh.folder, "objects.yaml"), join(config, "objects.yaml"));
  await copyFile(join(mesh.state, "control-plane/mesh"), join(work, "mesh"));
  await cp(join(mesh.state, "ca"), join(work, "etc/cacerts"), { recursive: true });
  return work;
}
