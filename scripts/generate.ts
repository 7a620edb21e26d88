/**
 * Generates `src/gen` from .proto files: Envoy's own (shipped with @grpc/grpc-js-xds), and ours under `proto/`.
 *
 *   proto/files/    whole files of ours, added to the tree
 *   proto/overlay/  same path as an upstream file: its imports and message fields are merged into that file, because
 *                   the shipped protos are older than the Envoy we run
 *
 * Nothing is done when the hash of all inputs is the one of the last run.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { gzipSync } from "node:zlib";

const root = join(import.meta.dirname, "..");
const upstream = join(root, "node_modules/@grpc/grpc-js-xds/deps");
const tree = join(root, ".cache/proto");
const out = join(root, "src/gen");
const stampFile = join(out, ".stamp");

/** Folders of upstream protos, each a root of import paths. */
const UPSTREAM_ROOTS = ["envoy-api", "googleapis", "protoc-gen-validate", "xds"];
/** Left out: they import protos that are not shipped, and no Envoy configuration uses them. */
const LEFT_OUT = [/^envoy\/service\/(metrics|trace)\//, /^envoy\/.*\/v[12](alpha)?\d*\//, /^tests\//, /^java\//];
const WANTED_GOOGLE =
  /^google\/(api\/(annotations|http|client|launch_stage|expr\/v1alpha1\/(checked|syntax))|rpc\/status)\.proto$/;

function protoFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".proto"))
    .sort();
}

function isWanted(path: string): boolean {
  if (LEFT_OUT.some((pattern) => pattern.test(path))) return false;
  return !path.startsWith("google/") || WANTED_GOOGLE.test(path);
}

/** Bodies of the top-level messages of an overlay file, by message name. */
function overlayMessages(text: string): Map<string, string> {
  const bodies = new Map<string, string>();
  for (const match of text.matchAll(/^message (\w+) \{\n([\s\S]*?)^\}/gm)) bodies.set(match[1] ?? "", match[2] ?? "");
  return bodies;
}

function applyOverlay(path: string, original: string, overlay: string): string {
  let text = original;
  const imports = [...overlay.matchAll(/^import .*;$/gm)].map((m) => m[0]).filter((line) => !original.includes(line));
  if (imports.length > 0) text = text.replace(/^package .*;$/m, (line) => `${line}\n\n${imports.join("\n")}`);
  for (const [name, body] of overlayMessages(overlay)) {
    const opening = new RegExp(`^message ${name} \\{\\n`, "m");
    if (!opening.test(text)) throw new Error(`overlay of ${path}: no message "${name}" in the upstream file`);
    text = text.replace(opening, (line) => `${line}${body}\n`);
  }
  return text;
}

function inputs(): { path: string; text: string }[] {
  const files = new Map<string, string>();
  for (const folder of UPSTREAM_ROOTS) {
    for (const path of protoFiles(join(upstream, folder))) {
      // Some of the shipped files have Windows line ends.
      if (isWanted(path)) files.set(path, readFileSync(join(upstream, folder, path), "utf8").replaceAll("\r\n", "\n"));
    }
  }
  for (const path of protoFiles(join(root, "proto/files"))) {
    files.set(path, readFileSync(join(root, "proto/files", path), "utf8"));
  }
  for (const path of protoFiles(join(root, "proto/overlay"))) {
    const original = files.get(path);
    if (original === undefined) throw new Error(`overlay ${path} has no upstream file`);
    files.set(path, applyOverlay(path, original, readFileSync(join(root, "proto/overlay", path), "utf8")));
  }
  return [...files].map(([path, text]) => ({ path, text }));
}

function run(command: string, args: readonly string[]): void {
  execFileSync(join(root, "node_modules/.bin", command), args, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
}

const files = inputs();
const hash = createHash("sha256");
hash.update(readFileSync(import.meta.filename)).update(readFileSync(join(root, "buf.gen.yaml")));
hash.update(readFileSync(join(root, "node_modules/@bufbuild/protoc-gen-es/package.json")));
for (const { path, text } of files) hash.update(path).update("\0").update(text).update("\0");
const stamp = hash.digest("hex");

if (!existsSync(stampFile) || readFileSync(stampFile, "utf8") !== stamp) {
  rmSync(tree, { recursive: true, force: true });
  for (const { path, text } of files) {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), text);
  }
  cpSync(join(root, "proto/buf.yaml"), join(tree, "buf.yaml"));
  rmSync(out, { recursive: true, force: true });
  run("buf", ["generate", "--template", "buf.gen.yaml", relative(root, tree)]);
  run("buf", ["build", relative(root, tree), "--exclude-source-info", "-o", join(relative(root, out), "all.binpb")]);
  // A module, so that bundles carry it: a program has no files beside it that it could count on.
  const packed = gzipSync(readFileSync(join(out, "all.binpb")), { level: 9 }).toString("base64");
  writeFileSync(join(out, "all_descriptors.ts"), `export const ALL_DESCRIPTORS =\n  "${packed}";\n`);
  writeFileSync(stampFile, stamp);
  console.log(`generated src/gen from ${files.length} .proto files`);
}
