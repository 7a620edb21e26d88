/** What the agent's bundle holds is what every pod pays for. */
import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { before, test } from "node:test";
import { agentBundle } from "./agent-bundle.ts";

const ROOT = join(import.meta.dirname, "..");
/** Packages that are in it; each was weighed. `re2js` is text only until a template of the user is rendered. */
const ALLOWED_PACKAGES = ["@bufbuild/protobuf", "commander", "ipaddr.js", "js-yaml", "re2js"];
const ALLOWED_FOLDERS = ["agent", "bin", "capture", "config", "lib", "protocol"];

let bundle: Awaited<ReturnType<typeof agentBundle>>;
let inputs: readonly string[];

before(async () => {
  bundle = await agentBundle(ROOT);
  inputs = Object.values(bundle).flatMap((part) => part.inputs);
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
  for (const { text } of Object.values(bundle)) {
    const at = [...text].findIndex((letter) => (letter.codePointAt(0) ?? 0) > 255);
    assert.equal(at, -1, `beyond Latin-1: ${text.slice(Math.max(0, at - 60), at + 10)}`);
  }
});

/** Whoever starts a pod waits for this part, and only then for Envoy. Of DNS it opens the sockets, to tell when they are taken. */
test("what runs until Envoy is started is a third of the bundle at most, without gRPC, answers of DNS and other commands", () => {
  const { text, inputs: first } = bundle["pilot-agent.cjs"];
  const whole = Object.values(bundle).reduce((sum, part) => sum + part.text.length, 0);
  assert.ok(text.length < whole / 3, `${text.length} of ${whole} bytes`);
  const late = first.filter((input) =>
    /^src\/(lib\/(grpc|pki)|capture\/run|agent\/(dns|wasm|sts\/server|status\/server))/.test(input),
  );
  assert.deepEqual(late.map((input) => basename(input)).sort(), ["hold-events.ts", "resolv-conf.ts", "udp-socket.ts"]);
});

/** The text of a part stays in the memory of every agent that read it. */
test("what serves Envoy is without templates, YAML, Wasm modules and other commands", () => {
  const serving = bundle["pilot-agent.serving.cjs"].inputs;
  assert.ok(serving.includes("src/agent/xds-proxy/proxy-stream.ts"));
  const seldom = serving.filter((input) =>
    /re2js|js-yaml|commander|go-template|^src\/(capture|bin|agent\/(shared|wasm\/fetch))/.test(input),
  );
  assert.deepEqual(seldom, []);
});
