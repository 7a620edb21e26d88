/** Modules and images from registries: gzip and tar in any order, and references to images. */
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { parseImageReference } from "#agent/wasm/image-reference.ts";
import { isWasm, pluginOf, unboxed } from "#agent/wasm/unpack.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { type FuzzTarget, readOrReject } from "./target.ts";

/** A tar archive with one file: the seed of what mutations change. */
const TAR = `plugin.wasm${"\x00".repeat(89)}0000644\x00${"\x00".repeat(16)}00000000010\x00${"\x00".repeat(20)}0${"\x00".repeat(100)}ustar\x000000`;

export const target: FuzzTarget = {
  maxBytes: 4096,
  dictionary: [
    TAR,
    "\x00asm\x01\x00\x00\x00",
    "\x1f\x8b\x08\x00",
    "ustar\x00",
    "plugin.wasm",
    "00000000010\x00",
    "77777777777\x00",
    "-0000000001\x00",
    "x",
    "L",
    "30 path=a/plugin.wasm\n",
    "docker.io/a/b:c",
    "@sha256:",
  ],
  async run(input) {
    const module = await unboxed(input);
    assert.ok(module.length > 0 || input.length === 0);
    const bare = await pluginIn(input);
    const found = await pluginIn(gzipSync(input, { level: 1 }));
    if (bare === undefined && found !== undefined)
      assert.ok(found.length <= input.length, "no module is larger than its archive");
    isWasm(input);
    readOrReject(() => parseImageReference(input.toString("latin1")), MeshError);
  },
};

/** The plugin of a layer; undefined if it is rejected with a declared error. */
async function pluginIn(layer: Buffer): Promise<Buffer | undefined> {
  try {
    return await pluginOf(layer);
  } catch (thrown) {
    if (thrown instanceof MeshError) return undefined;
    throw thrown;
  }
}
