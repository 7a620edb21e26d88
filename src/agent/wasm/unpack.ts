/** Finds the module in what a server sent: bare, or inside gzip and tar. */
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { MeshError } from "#lib/mesh-error.ts";

/** Real modules are far smaller. */
export const MAX_MODULE_BYTES = 256 * 1024 * 1024;

const BLOCK = 512;
const REGULAR_FILE = new Set(["0", "\0", "7"]);
const PAX_HEADER = "x";
const LONG_NAME = "L";
/** What an archive may be wrapped in; more is a bomb. */
const MAX_LAYERS = 8;
/** Images of modules have a few. */
const MAX_FILES = 10_000;
/** Names in headers of their own are no longer than paths can be. */
const MAX_NAME_BYTES = 64 * 1024;
/** How much is unpacked at a time. */
const CHUNK = 1024 * 1024;

const gunzipAsync = promisify(gunzip);

/** Starts like a module: its magic number and a version. */
export function isWasm(bytes: Buffer): boolean {
  return bytes.length >= 8 && bytes.readUInt32BE(0) === 0x0061736d;
}

/** The module inside an archive's first file, however often wrapped; the bytes as they are when it is none. */
export async function unboxed(bytes: Buffer): Promise<Buffer> {
  let inner = bytes;
  for (let layer = 0; layer < MAX_LAYERS && !isWasm(inner); layer++) {
    const next = isGzip(inner)
      ? await tryGunzip(inner)
      : isTar(inner)
        ? tarFiles(inner).next().value?.content
        : undefined;
    if (next === undefined) return bytes;
    inner = next;
  }
  return inner;
}

/** `plugin.wasm` of an image's layer, which is a tar archive in gzip. Throws when it is not there. */
export async function pluginOf(layer: Buffer): Promise<Buffer> {
  const archive = isGzip(layer) ? await tryGunzip(layer) : undefined;
  if (archive === undefined) throw unusable("the layer is not compressed with gzip, or unpacks to too much");
  for (const { name, content } of tarFiles(archive)) {
    if (name.split("/").at(-1) === "plugin.wasm") return content;
  }
  throw unusable("plugin.wasm is not in the archive");
}

function isGzip(bytes: Buffer): boolean {
  return bytes.length > 2 && bytes.readUInt16BE(0) === 0x1f8b;
}

function isTar(bytes: Buffer): boolean {
  return bytes.length >= BLOCK && bytes.toString("latin1", 257, 262) === "ustar";
}

async function tryGunzip(bytes: Buffer): Promise<Buffer | undefined> {
  try {
    return await gunzipAsync(bytes, { maxOutputLength: MAX_MODULE_BYTES, chunkSize: CHUNK });
  } catch {
    return undefined; // what is broken or too large is no archive
  }
}

interface TarFile {
  readonly name: string;
  readonly content: Buffer;
}

/** The regular files of an archive. Ends where it stops being one. */
function* tarFiles(archive: Buffer): Generator<TarFile, undefined> {
  let longName: string | undefined;
  for (let [at, files] = [0, 0]; at + BLOCK <= archive.length; files++) {
    if (files === MAX_FILES) throw unusable(`the archive has more than ${MAX_FILES} files`);
    const header = archive.subarray(at, at + BLOCK);
    const size = octal(header.subarray(124, 136));
    const start = at + BLOCK;
    if (header[0] === 0 || size === undefined || start + size > archive.length) return;
    const content = archive.subarray(start, start + size);
    const type = header.toString("latin1", 156, 157);
    if (type === PAX_HEADER) longName = paxPath(content.subarray(0, MAX_NAME_BYTES)) ?? longName;
    else if (type === LONG_NAME) longName = cString(content.subarray(0, MAX_NAME_BYTES));
    else {
      const prefix = cString(header.subarray(345, 500));
      const name = cString(header.subarray(0, 100));
      if (REGULAR_FILE.has(type)) yield { name: longName ?? (prefix === "" ? name : `${prefix}/${name}`), content };
      longName = undefined;
    }
    at = start + Math.ceil(size / BLOCK) * BLOCK;
  }
}

/** `path` of a header of POSIX.1-2001, whose records are `LENGTH KEY=VALUE\\n`. */
function paxPath(header: Buffer): string | undefined {
  let path: string | undefined;
  for (let at = 0; at < header.length; ) {
    const [prefix = "", length = ""] = /^(\d{1,6}) /.exec(header.toString("latin1", at, at + 7)) ?? [];
    const end = at + Number(length);
    if (end <= at + prefix.length) break;
    const record = header.toString("utf8", at + prefix.length, end - 1);
    if (record.startsWith("path=")) path = record.slice("path=".length);
    at = end;
  }
  return path;
}

function octal(field: Buffer): number | undefined {
  const text = cString(field).trim();
  return /^[0-7]+$/.test(text) ? Number.parseInt(text, 8) : undefined;
}

function cString(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString("utf8", 0, end < 0 ? bytes.length : end);
}

function unusable(reason: string): MeshError {
  return new MeshError("WASM_IMAGE_INVALID", reason);
}
