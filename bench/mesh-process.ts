/** A mesh of the bench: a folder of its own, started by the command that people use. */
import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { MemberStatus, MeshStatus } from "#standalone/status/status.ts";

const MIZZEN = join(import.meta.dirname, "../bin/mizzen");
const MAX_BYTES = 64 * 1024 * 1024;

export class BenchMesh implements AsyncDisposable {
  readonly #root: string;
  readonly #name: string;

  private constructor(root: string) {
    this.#root = root;
    this.#name = `bench-${root.slice(-6).toLowerCase()}`;
  }

  get folder(): string {
    return join(this.#root, "mesh");
  }

  get state(): string {
    return join(this.#root, "state");
  }

  /** A folder with these files beside its mesh.yaml. */
  static async make(files: Readonly<Record<string, string>>): Promise<BenchMesh> {
    const mesh = new BenchMesh(await mkdtemp(join(tmpdir(), "mizzen-bench-")));
    await mkdir(mesh.folder);
    for (const path of [mesh.#root, mesh.folder]) await chmod(path, 0o755);
    for (const [name, text] of Object.entries(files)) await mesh.write(name, text);
    return mesh;
  }

  async write(file: string, text: string): Promise<void> {
    await writeFile(join(this.folder, file), text);
  }

  /** Makes the mesh what the spec says; answers with the seconds that took. */
  async up(spec: object): Promise<number> {
    const file = { apiVersion: "mizzen.dev/v1alpha1", kind: "Mesh", metadata: { name: this.#name }, spec };
    await this.write("mesh.yaml", JSON.stringify(file));
    const startedAt = performance.now();
    await this.#mizzen("up", this.folder, "--detach", "--timeout", "300");
    return (performance.now() - startedAt) / 1000;
  }

  async down(): Promise<void> {
    await this.#mizzen("down");
  }

  /** What a command inside a workload prints. */
  exec(workload: string, command: readonly string[]): Promise<string> {
    return this.#mizzen("exec", workload, ...command);
  }

  async status(): Promise<MeshStatus> {
    return JSON.parse(await readFile(join(this.state, "status.json"), "utf8"));
  }

  async member(wanted: string): Promise<MemberStatus> {
    const found = (await this.status()).members.find(({ name }) => name === wanted);
    if (found === undefined) throw new Error(`no member "${wanted}"`);
    return found;
  }

  /** Starts, stops or restarts a workload. */
  async change(how: "start" | "stop" | "restart", workload: string): Promise<void> {
    await this.#mizzen(how, workload);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.down().catch(() => undefined);
    await rm(this.#root, { recursive: true, force: true });
  }

  async #mizzen(command: string, ...args: readonly string[]): Promise<string> {
    const argv = [command, "--state", this.state, ...args];
    return (await promisify(execFile)(MIZZEN, argv, { maxBuffer: MAX_BYTES })).stdout;
  }
}
