/** Bundles each command, and the library, into dist/. CommonJS because it starts faster and takes less memory than ES modules. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { agentBundle } from "./agent-bundle.ts";

const root = join(import.meta.dirname, "..");
const COMMANDS = ["pilot-agent", "pilot-discovery", "mizzen", "mesh", "config"].filter((name) =>
  existsSync(join(root, `src/bin/${name}.ts`)),
);

/** Those of `bin/pilot-agent` under which V8 makes other code. */
const AGENT_FLAGS = ["--max-semi-space-size=1"];

const hash = createHash("sha256");
for (const file of [
  "package-lock.json",
  "package.json",
  "scripts/build.ts",
  "scripts/agent-bundle.ts",
  "scripts/agent-code.ts",
  "scripts/agent-surroundings.ts",
  "scripts/signing-service.ts",
  "src/gen/.stamp",
])
  hash.update(readFileSync(join(root, file)));
for (const file of globSync("{src,packages}/**/*.ts", { cwd: root, exclude: ["src/gen/**"] }).sort()) {
  if (!file.startsWith("src/gen/") && !file.endsWith(".test.ts"))
    hash.update(file).update(readFileSync(join(root, file)));
}
const stamp = hash.digest("hex");
const stampFile = join(root, "dist/.stamp");

if (!existsSync(stampFile) || readFileSync(stampFile, "utf8") !== stamp) {
  const { build } = await import("esbuild");
  mkdirSync(join(root, "dist"), { recursive: true });
  // A build that fails leaves neither the former state nor this one.
  rmSync(stampFile, { force: true });
  await build({
    absWorkingDir: root,
    entryPoints: [...COMMANDS, "launcher", "read-worker"]
      .filter((name) => name !== "pilot-agent")
      .map((name) => `src/bin/${name}.ts`),
    outdir: "dist",
    outExtension: { ".js": ".cjs" },
    bundle: true,
    platform: "node",
    target: "node24",
    format: "cjs",
    define: { "import.meta.dirname": "__dirname" },
    // V8 keeps the text in memory as long as the program runs, and twice as large where a comment is not Latin. A limit,
    // because Node shows the line of a fatal error.
    minifyWhitespace: true,
    lineLimit: 160,
    logLevel: "warning",
    metafile: true,
  }).then((result) => writeFileSync(join(root, "dist/meta.json"), JSON.stringify(result.metafile)));
  const parts = Object.entries(await agentBundle(root)).map(([name, { text }]) => ({
    file: join(root, "dist", name),
    text,
  }));
  for (const former of globSync("dist/pilot-agent.*", { cwd: root })) rmSync(join(root, former));
  for (const { file, text } of parts) writeFileSync(file, text);
  const code = [...AGENT_FLAGS, join(root, "scripts/agent-code.ts"), ...parts.map(({ file }) => file)];
  execFileSync(process.execPath, code, { stdio: "pipe" });
  writeFileSync(stampFile, stamp);
  console.log(`bundled ${COMMANDS.join(", ")} into dist/`);
}
