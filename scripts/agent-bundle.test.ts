/** What the agent's bundle holds is what every pod pays for. */
import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { before, test } from "node:test";
import { type AgentBundle, agentBundle } from "./agent-bundle.ts";

const ROOT = join(import.meta.dirname, "..");
/** Packages that are in it; each was weighed. `re2js` is text only until a template of the user is rendered. */
const ALLOWED_PACKAGES = ["@bufbuild/protobuf", "commander", "ipaddr.js", "js-yaml", "re2js"];
const ALLOWED_FOLDERS = ["agent", "bin", "capture", "config", "lib", "protocol"];

let bundle: AgentBundle;
let inputs: readonly string[];

before(async () => {
  bundle = await agentBundle(ROOT, "./rest.cjs");
  inputs = [...bundle.inputs.first, ...bundle.inputs.rest];
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
  for (const text of [bundle.first, bundle.rest]) {
    const at = [...text].findIndex((letter) => (letter.codePointAt(0) ?? 0) > 255);
    assert.equal(at, -1, `beyond Latin-1: ${text.slice(Math.max(0, at - 60), at + 10)}`);
  }
});

/** Whoever starts a pod waits for this part, and only then for Envoy. Of DNS it opens the sockets, to tell when they are taken. */
test("what runs until Envoy is started is a third of the bundle at most, without gRPC, answers of DNS and other commands", () => {
  assert.ok(bundle.first.length < bundle.rest.length / 2, `${bundle.first.length} of ${bundle.rest.length} bytes`);
  const late = bundle.inputs.first.filter((input) =>
    /^src\/(lib\/(grpc|pki)|capture\/run|agent\/(dns|wasm|sts\/server|status\/server))/.test(input),
  );
  assert.deepEqual(late.map((input) => basename(input)).sort(), ["hold-events.ts", "resolv-conf.ts", "udp-socket.ts"]);
});
