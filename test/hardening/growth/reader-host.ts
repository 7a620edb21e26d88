/**
 * Runs readers of files and of downloads in a process of its own. Its parent names a reader and sends an input; the reader runs
 * when the parent says so, so that the transport of the input is not measured.
 */
import { setImmediate } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { parseDownwardApi } from "#agent/downward-api.ts";
import { AnswerReader } from "#agent/status/answer-reader.ts";
import { istioNames, LineCutter } from "#agent/status/exposition-lines.ts";
import { parseAppProbes } from "#agent/status/probes/parse.ts";
import { jwtAudience, jwtExpiry } from "#agent/sts/jwt.ts";
import { parseImageReference } from "#agent/wasm/image-reference.ts";
import { credentialsFor } from "#agent/wasm/registry-credentials.ts";
import { pluginOf, unboxed } from "#agent/wasm/unpack.ts";
import { parseObject } from "#config/kinds/parse-object.ts";
import { parseMeshConfig } from "#config/mesh/mesh-config.ts";
import { readProxyConfigText } from "#config/proxy-config/proxy-config.ts";
import { readDocuments } from "#lib/yaml/read.ts";
import { fetchKeySet } from "#sources/jwks/fetch-keys.ts";

const ANYWHERE = {
  ...{ allowLocal: true, blockedRanges: [], allowedRanges: [], clusterDomain: "cluster.local" },
  ...{ insecure: false, extraRoots: [] },
};

/** Errors are an answer, too. */
export const READERS: Readonly<Record<string, (input: Buffer) => unknown>> = {
  "configuration files": (input) => readDocuments(input.toString()).map(({ value }) => parseObject(value)),
  "mesh config": (input) => parseMeshConfig(input.toString()),
  "key sets": (input) =>
    fetchKeySet({ id: input.toString(), discovers: false, timeoutMs: 30_000 }, ANYWHERE, AbortSignal.timeout(30_000)),
  "image layers": (input) => pluginOf(gzipSync(input, { level: 1 })),
  "image references": (input) => parseImageReference(input.toString("latin1")),
  "registry credentials": (input) => credentialsFor("a", input.toString()),
  "Wasm modules": (input) => unboxed(input),
  "pod labels and annotations": (input) => parseDownwardApi(input.toString()),
  PROXY_CONFIG: (input) => readProxyConfigText(input.toString(), () => undefined),
  tokens: (input) => [jwtExpiry(input.toString()), jwtAudience(input.toString())],
  probes: (input) => parseAppProbes(input.toString()),
  scrapes: async (input) => {
    const reader = new AnswerReader();
    const cutter = new LineCutter();
    for (let at = 0; at < input.length; at += 65_536) {
      const chunk = input.subarray(at, at + 65_536);
      reader.read(chunk);
      for (const lines of cutter.cut(chunk)) istioNames(lines);
      await setImmediate(); // each chunk comes in a turn of its own
    }
  },
};

export interface ReadRequest {
  readonly reader: string;
  readonly input: Uint8Array;
}

let prepared: (() => unknown) | undefined;

process.on("message", async (message: ReadRequest | string) => {
  if (typeof message === "object") {
    const read = READERS[message.reader];
    const input = Buffer.from(message.input);
    prepared = () => read?.(input);
    process.send?.("prepared");
  } else if (message === "go") {
    try {
      await prepared?.();
    } catch {
      // rejected, which is what most of these inputs deserve
    }
    process.send?.("done");
  }
});
process.channel?.ref();
console.log("reading");
