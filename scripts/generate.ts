/**
 * Generates `src/gen` from .proto files: Envoy's own (shipped with @grpc/grpc-js-xds), and ours under `proto/`.
 *
 *   proto/files/    whole files, added to the tree: ours, and those of Envoy that are newer than the shipped ones
 *   proto/overlay/  same path as an upstream file: its imports, messages, fields and values of enums are merged into that
 *                   file, because the shipped protos are older than the Envoy we run
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

/** Where a block begins and ends in lines that are indented as protos are. */
interface Block {
  readonly opening: string;
  readonly start: number;
  readonly end: number;
}

/** The messages, oneofs and enums that lines of that indentation open. */
function blocksOf(lines: readonly string[], indent: string): Block[] {
  const blocks: Block[] = [];
  for (let start = 0; start < lines.length; start++) {
    const opening = lines[start] ?? "";
    if (!opening.startsWith(indent) || !/^(message|oneof|enum) \w+ \{$/.test(opening.slice(indent.length))) continue;
    const end = lines.indexOf(`${indent}}`, start);
    blocks.push({ opening, start, end });
    start = end;
  }
  return blocks;
}

/** Lines with those of an overlay: what is in a block goes to the end of the block of that name, the rest to the end. */
function merged(lines: readonly string[], overlay: readonly string[], indent = ""): readonly string[] {
  let result = lines;
  let rest = overlay;
  for (const { opening, start, end } of blocksOf(overlay, indent).reverse()) {
    const same = blocksOf(result, indent).find((block) => block.opening === opening);
    if (same === undefined) continue;
    const body = merged(result.slice(same.start + 1, same.end), overlay.slice(start + 1, end), `${indent}  `);
    result = [...result.slice(0, same.start + 1), ...body, ...result.slice(same.end)];
    rest = [...rest.slice(0, start), ...rest.slice(end + 1)];
  }
  return [...result, ...rest];
}

function applyOverlay(original: string, overlay: string): string {
  const isImport = (line: string) => /^import .*;$/.test(line);
  const lines = overlay.split("\n");
  const imports = lines.filter((line) => isImport(line) && !original.includes(line));
  const body = lines.filter((line) => !isImport(line));
  const text = original.replace(/^package .*;$/m, (line) => [line, "", ...imports].join("\n"));
  return merged(text.split("\n"), body).join("\n");
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
    files.set(path, applyOverlay(original, readFileSync(join(root, "proto/overlay", path), "utf8")));
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
