import { execFile } from "node:child_process";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { Bootstrap } from "./bootstrap.ts";
import { type SupportedBootstrap, supportedBootstrap } from "./supported.ts";

/** Writes a file as a whole or not at all; its folder is private to the agent's user. */
export async function writePrivately(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const partial = `${path}.${process.pid}.tmp`;
  await writeFile(partial, text, { mode: 0o600 });
  await rename(partial, path);
}

/** Writes the bootstrap to a file in the configuration folder, without what the Envoy at hand lacks. */
export async function writeBootstrap(
  wanted: Bootstrap,
  {
    configPath,
    binaryPath,
    fileName = "envoy-rev.json",
  }: { readonly configPath: string; readonly binaryPath: string; readonly fileName?: string },
): Promise<SupportedBootstrap & { readonly path: string }> {
  const path = join(configPath, fileName);
  const write = (bootstrap: Bootstrap) => writePrivately(path, `${JSON.stringify(bootstrap, null, 2)}\n`);
  await write(wanted);
  const supported = await supportedBootstrap(wanted, async (bootstrap) => {
    await write(bootstrap);
    return validate(binaryPath, path);
  });
  if (supported.removed.length > 0) await write(supported.bootstrap);
  return { ...supported, path };
}

/** What Envoy says against a bootstrap file; nothing when it accepts it, or cannot be asked: its start will tell. */
async function validate(binaryPath: string, path: string): Promise<string> {
  const args = [
    "--mode",
    "validate",
    "-c",
    path,
    "--allow-unknown-static-fields",
    "--disable-hot-restart",
    "-l",
    "error",
  ];
  try {
    await promisify(execFile)(binaryPath, args);
    return "";
  } catch (thrown) {
    return thrown instanceof Error && "stderr" in thrown ? String(thrown.stderr) : "";
  }
}
