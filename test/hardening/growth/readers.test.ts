/** Files and downloads that others write cost at most what their size suggests. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { assertLinear, doublings } from "./growth.ts";
import { MeasuredProgram } from "./measured-program.ts";
import { JSONS, TEXTS } from "./shapes.ts";

const KB = 1024;
const MB = 1024 * KB;
const BLOCK = 512;

type Shapes = Readonly<Record<string, (size: number) => string | Buffer>>;

const YAMLS: Shapes = {
  "many documents": (size) => "a: 1\n---\n".repeat(size / 9),
  "many keys": (size) => Array.from({ length: size / 12 }, (_, i) => `k${i}: v\n`).join(""),
  "deep blocks": (size) => Array.from({ length: Math.sqrt(2 * size) }, (_, i) => `${" ".repeat(i)}a:\n`).join(""),
  "deep lists": (size) => `${"- ".repeat(size / 2)}a`,
  "anchors and aliases": (size) =>
    Array.from({ length: size / 24 }, (_, i) => `a${i}: &a${i} x\nb${i}: *a${i}\n`).join(""),
  "doubling aliases": (size) =>
    `a0: &a0 [x]\n${Array.from({ length: size / 40 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]\n`).join("")}`,
  "one long key": (size) => `${"a".repeat(size)}: 1\n`,
  "a long plain scalar": (size) => `a: ${"b ".repeat(size / 2)}\n`,
  "many comments": (size) => "# a\n".repeat(size / 4),
  "the same key": (size) => "a: 1\n".repeat(size / 5),
  "unclosed quotes": (size) => `a: "${"b\n ".repeat(size / 3)}`,
  objects: (size) =>
    Array.from(
      { length: size / 128 },
      (_, i) =>
        `apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: s${i}}\nspec: {hosts: [h${i}.com], bad${i}: 1}\n`,
    ).join("---\n"),
};
const ARCHIVES: Shapes = {
  "empty files": (size) => Buffer.concat(new Array<Buffer>(Math.floor(size / BLOCK)).fill(tarHead("a", 0, "0"))),
  "one file of another name": (size) => Buffer.concat([tarHead("a", size, "0"), Buffer.alloc(size)]),
  "a header of digits": (size) => Buffer.concat([tarHead("a", size, "x"), Buffer.alloc(size, "1")]),
  "a header of lines": (size) => Buffer.concat([tarHead("a", size, "x"), Buffer.alloc(size, "9 path\n")]),
  "a long name": (size) => Buffer.concat([tarHead("a", size, "L"), Buffer.alloc(size, "a")]),
  zeros: (size) => Buffer.alloc(size),
};
const PACKED: Shapes = {
  ...ARCHIVES,
  "gzip of zeros": (size) => gzipSync(Buffer.alloc(size), { level: 1 }),
  "gzip eight times": (size) => {
    let bytes = Buffer.alloc(size);
    for (let i = 0; i < 8; i++) bytes = gzipSync(bytes, { level: 1 });
    return bytes;
  },
};
const DOWNWARD: Shapes = {
  ...TEXTS,
  "many labels": (size) => 'a="b"\n'.repeat(size / 6),
  "one long value": (size) => `a="${"b".repeat(size)}"\n`,
  "many escapes": (size) => `a="${"\\u0041".repeat(size / 6)}"\n`,
  "an unclosed value": (size) => `a="${"\\\\".repeat(size / 2)}`,
};
const TOKENS: Shapes = {
  ...TEXTS,
  "a payload": (size) => `a.${Buffer.from(JSON.stringify({ aud: "a".repeat(size) })).toString("base64url")}.b`,
};
const ANSWERS: Shapes = {
  "many short lines": (size) => `HTTP/1.1 200 OK\r\n\r\n${"envoy_istio_a 1\n".repeat(size / 16)}`,
  "one long line": (size) => `HTTP/1.1 200 OK\r\n\r\n${"envoy_istio_a ".repeat(size / 14)}`,
  "many small chunks": (size) =>
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${"1\r\na\r\n".repeat(size / 6)}`,
  "a chunk with a long extension": (size) =>
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1${" ".repeat(size)}`,
  "many headers": (size) => `HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(size / 6)}`,
  "many interim answers": (size) => "HTTP/1.1 100 Continue\r\n\r\n".repeat(size / 25),
};

/** Sizes up to the largest that is accepted, or beyond which Kubernetes keeps nothing (1 MB for pods and ConfigMaps). */
const CASES: Readonly<Record<string, { readonly sizes: readonly number[]; readonly shapes: Shapes }>> = {
  "configuration files": { sizes: doublings(64 * KB, 512 * KB), shapes: { ...YAMLS, ...JSONS } },
  "mesh config": { sizes: doublings(64 * KB, 512 * KB), shapes: { ...YAMLS, ...JSONS } },
  "image layers": { sizes: doublings(128 * KB, 8 * MB), shapes: ARCHIVES },
  "image references": { sizes: doublings(8 * KB, 64 * KB), shapes: TEXTS },
  "registry credentials": { sizes: doublings(64 * KB, MB), shapes: JSONS },
  "Wasm modules": { sizes: doublings(128 * KB, 8 * MB), shapes: PACKED },
  "pod labels and annotations": { sizes: doublings(64 * KB, MB), shapes: DOWNWARD },
  PROXY_CONFIG: { sizes: doublings(64 * KB, 512 * KB), shapes: { ...YAMLS, ...JSONS } },
  tokens: { sizes: doublings(64 * KB, MB), shapes: TOKENS },
  probes: { sizes: doublings(64 * KB, MB), shapes: JSONS },
  scrapes: { sizes: doublings(MB, 8 * MB), shapes: ANSWERS },
};

describe("readers", { timeout: 600_000 }, () => {
  let host: MeasuredProgram;
  const start = async () => {
    host = new MeasuredProgram(join(import.meta.dirname, "reader-host.ts"), [], { cwd: import.meta.dirname });
    await host.printed(/(reading)/);
  };
  before(start);
  beforeEach(async () => {
    if (host.hasEnded) await start();
  });
  after(() => host[Symbol.asyncDispose]());

  for (const [reader, { sizes, shapes }] of Object.entries(CASES)) {
    for (const [shape, inputOf] of Object.entries(shapes)) {
      test(`${reader}: ${shape}`, () =>
        assertLinear({ sizes, costOf: (size) => costOf(reader, Buffer.from(inputOf(size))) }));
    }
  }

  for (const [shape, text] of Object.entries(JSONS)) {
    test(`key sets: ${shape}`, async () => {
      let body = "";
      const server = createServer((_, response) => response.end(body)).listen(0, "127.0.0.1");
      await once(server, "listening");
      const url = Buffer.from(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
      await assertLinear({
        sizes: doublings(64 * KB, MB),
        costOf: (size) => {
          body = text(size);
          return costOf("key sets", url);
        },
      }).finally(() => server.close());
    });
  }

  async function costOf(reader: string, input: Buffer) {
    await host.tell({ reader, input }, "prepared");
    return host.cost(() => host.tell("go", "done"));
  }
});

function tarHead(name: string, size: number, type: string): Buffer {
  const head = Buffer.alloc(BLOCK);
  head.write(name, 0);
  head.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  head.write(type, 156);
  head.write("ustar\x0000", 257);
  return head;
}
