import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { DEFAULT_PROXY_CONFIG } from "#config/proxy-config/proxy-config.ts";
import { type EnvoyArgumentsInput, envoyArguments, splitLogLevel } from "./arguments.ts";

const recorded = join(
  process.env.CONFORMANCE ?? join(import.meta.dirname, "../../../../shared/conformance"),
  "../recorded",
);
const whereThere = { skip: existsSync(recorded) ? false : `no ${recorded}` };

const INPUT: EnvoyArgumentsInput = {
  configFile: "./proxy/envoy-rev.json",
  proxyConfig: DEFAULT_PROXY_CONFIG,
  addresses: ["127.0.0.1", "192.0.2.2", "fd00::2"],
  logLevel: "warning",
  componentLogLevel: "",
  skipDeprecatedLogs: true,
  coreDump: false,
};

for (const [kind, input] of [
  ["sidecar", { ...INPUT, proxyConfig: { ...DEFAULT_PROXY_CONFIG, concurrency: 1 } }],
  ["router", { ...INPUT, componentLogLevel: "misc:error" }],
] as const) {
  test(`envoyArguments() equals the recorded command line of a ${kind}`, whereThere, () => {
    const line = readFileSync(join(recorded, kind, "envoy-args.txt"), "utf8").trim();
    assert.equal(["/usr/local/bin/envoy", ...envoyArguments(input)].join(" "), line);
  });
}

test("envoyArguments() writes each option where it is asked for", () => {
  const args = envoyArguments({
    ...INPUT,
    addresses: ["fd00::2"],
    logLevel: "info,misc:error,upstream:debug",
    componentLogLevel: "ignored:info",
    skipDeprecatedLogs: false,
    coreDump: true,
    bootstrapOverride: '{"a":1}',
    proxyConfig: { ...DEFAULT_PROXY_CONFIG, drainDuration: "60s", fileFlushInterval: "0.500s", fileFlushMinSizeKb: 64 },
  }).join(" ");
  assert.match(args, /--drain-time-s 60 .*--local-address-ip-version v6 --file-flush-interval-msec 500 /);
  assert.match(
    args,
    /--file-flush-min-size-kb 64 -l info --component-log-level misc:error,upstream:debug --enable-core-dump --config-yaml {"a":1}$/,
  );
});

test("envoyArguments() gives whole milliseconds, which is all that Envoy reads", () => {
  const args = envoyArguments({ ...INPUT, proxyConfig: { ...DEFAULT_PROXY_CONFIG, fileFlushInterval: "0.001500s" } });
  assert.equal(args[args.indexOf("--file-flush-interval-msec") + 1], "1");
});

test("splitLogLevel() takes the level from anywhere in the list", () => {
  assert.deepEqual(splitLogLevel("misc:warn,info,upstream:debug"), {
    level: "info",
    components: ["misc:warn", "upstream:debug"],
  });
  assert.deepEqual(splitLogLevel("misc:warn,a:b:c"), { level: "", components: ["misc:warn"] });
});
