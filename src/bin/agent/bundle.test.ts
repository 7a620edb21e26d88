/** What the agent's bundle holds is what every pod pays for. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { before, test } from "node:test";
import { build, type Metafile } from "esbuild";

const ROOT = join(import.meta.dirname, "../../..");
/** Packages that are in it; each was weighed. `re2js` is text only until a template of the user is rendered. */
const ALLOWED_PACKAGES = ["@bufbuild/protobuf", "commander", "ipaddr.js", "js-yaml", "re2js"];
const ALLOWED_FOLDERS = ["agent", "bin", "capture", "config", "lib", "protocol"];

let inputs: string[];
let metafile: Metafile;
let text: string;

before(async () => {
  const result = await build({
    absWorkingDir: ROOT,
    entryPoints: ["src/bin/pilot-agent.ts"],
    outfile: "pilot-agent.cjs",
    write: false,
    bundle: true,
    platform: "node",
    target: "node24",
    format: "cjs",
    metafile: true,
    logLevel: "silent",
  });
  metafile = result.metafile;
  inputs = Object.keys(Object.values(metafile.outputs)[0]?.inputs ?? {});
  text = result.outputFiles[0]?.text ?? "";
});

test("the agent's bundle holds no package that is not on the list", () => {
  const packages = inputs.flatMap((input) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1] ?? []);
  const unknown = new Set(packages.filter((name) => !ALLOWED_PACKAGES.some((allowed) => name.startsWith(allowed))));
  assert.deepEqual([...unknown], []);
});

test("the agent's bundle holds no generated code, and only folders that the agent needs", () => {
  const folders = new Set(inputs.flatMap((input) => /^src\/([^/]+)\//.exec(input)?.[1] ?? []));
  assert.deepEqual(
    [...folders].filter((folder) => !ALLOWED_FOLDERS.includes(folder)),
    [],
  );
});

test("of protobuf the agent's bundle holds the wire format, not messages", () => {
  const heavy = inputs.filter((input) => /@bufbuild\/protobuf\/.*(registry|codegenv2|reflect|wkt)\b/.test(input));
  assert.deepEqual(heavy, []);
});

/** One letter beyond Latin-1 makes V8 keep the whole text with two bytes per letter. */
test("the agent's bundle is Latin-1", () => {
  const at = [...text].findIndex((letter) => (letter.codePointAt(0) ?? 0) > 255);
  assert.equal(at, -1, `beyond Latin-1: ${text.slice(Math.max(0, at - 60), at + 10)}`);
});
