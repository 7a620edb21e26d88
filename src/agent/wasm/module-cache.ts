/**
 * Modules in files, by digest:  FOLDER / SHA-256 of the module's name / its checksum .wasm
 *
 * A module is fetched when no file has it: none of its checksum, or none for its URL. With policy Always (the default for
 * images with tag `latest`) a URL is asked again when the object that names it changed. Files that nobody asked for in a
 * day are removed.
 */
import { createHash } from "node:crypto";
import { readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "#lib/async/sleep.ts";
import { makeFolder } from "#lib/files/make-folder.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { WasmMetrics } from "../metrics.ts";
import type { RemoteModule } from "./extension.ts";
import type { FetchOptions, Offer } from "./fetch-module.ts";
import { isWasm } from "./unpack.ts";

/** Upper limit for the timeout that the control plane sends. */
const MAX_TIMEOUT_MS = 600_000;

export interface ModuleCacheOptions extends FetchOptions {
  readonly folder: string;
  /** WASM_MODULE_EXPIRY */
  readonly expiryMs: number;
  /** WASM_PURGE_INTERVAL */
  readonly purgeEveryMs: number;
  readonly metrics: WasmMetrics;
  readonly now?: () => number;
}

interface Entry {
  readonly path: string;
  lastUsed: number;
  /** URLs whose newest module this is. */
  readonly urls: Set<string>;
}

/** The newest module of a URL, and at which versions of the objects that name it. */
interface Known {
  checksum: string;
  readonly versions: Map<string, string>;
}

export class ModuleCache {
  readonly #options: ModuleCacheOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #known = new Map<string, Known>();
  /** One fetch serves all who ask for the same meanwhile. */
  readonly #running = new Map<string, Promise<string>>();

  constructor(options: ModuleCacheOptions) {
    this.#options = options;
    options.metrics.cacheEntries = () => this.#entries.size;
  }

  /** The file with a module; rejects when it cannot be had. */
  readonly get = async (module: RemoteModule): Promise<string> => {
    if (!URL.canParse(module.url)) throw new MeshError("WASM_DOWNLOAD_FAILED", `"${module.url}" is no URL`);
    const checksum = module.checksum || digestOf(module.url) || this.#knownChecksum(module);
    const found = this.#use(module, checksum);
    if (found !== undefined) return found;
    const key = JSON.stringify([module.url, checksum, module.pullSecret]);
    const running = this.#running.get(key) ?? this.#fetch(module, checksum).finally(() => this.#running.delete(key));
    this.#running.set(key, running);
    return running;
  };

  /** Removes modules that nobody asks for any more, until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.purge();
      await sleep(this.#options.purgeEveryMs, signal);
    }
  }

  async purge(): Promise<void> {
    const { expiryMs, log } = this.#options;
    const oldest = this.#now() - expiryMs;
    for (const [key, { lastUsed, path, urls }] of this.#entries) {
      if (lastUsed >= oldest) continue;
      try {
        await rm(path);
      } catch (thrown) {
        log.error(`Cannot remove Wasm module ${path}: ${errorText(thrown)}`);
        continue;
      }
      for (const url of urls) this.#known.delete(url);
      this.#entries.delete(key);
    }
    await this.#purgeForgotten(oldest);
  }

  async #fetch(module: RemoteModule, checksum: string): Promise<string> {
    const { metrics } = this.#options;
    const limit = AbortSignal.timeout(Math.min(module.timeoutMs, MAX_TIMEOUT_MS));
    const { offerOf } = await import("./fetch-module.ts");
    const isImage = module.url.startsWith("oci:");
    let offer: Offer;
    let bytes: Buffer;
    try {
      offer = await offerOf(module, this.#options, limit);
    } catch (cause) {
      metrics.fetches[isImage ? "manifest_failure" : "download_failure"].add();
      throw new MeshError("WASM_DOWNLOAD_FAILED", `cannot fetch Wasm module ${module.url}`, { cause });
    }
    if (checksum !== "" && checksum !== offer.checksum) {
      metrics.fetches.checksum_mismatched.add();
      const text = `module downloaded from ${module.url} has checksum ${offer.checksum}, which does not match: ${checksum}`;
      throw new MeshError("WASM_CHECKSUM_MISMATCH", text);
    }
    const kept = checksum === "" ? this.#use(module, offer.checksum) : undefined;
    if (kept !== undefined) return kept;
    try {
      bytes = await offer.read();
    } catch (cause) {
      metrics.fetches.download_failure.add();
      throw new MeshError("WASM_DOWNLOAD_FAILED", `could not fetch Wasm binary of ${module.url}`, { cause });
    }
    if (!isWasm(bytes)) {
      metrics.fetches.fetch_failure.add();
      throw new MeshError("WASM_IMAGE_INVALID", `fetched Wasm binary from ${module.url} is invalid`);
    }
    metrics.fetches.success.add();
    return this.#add(module, offer.checksum, bytes);
  }

  /** The file of a checksum, if there is one; it counts as used. */
  #use(module: RemoteModule, checksum: string): string | undefined {
    const entry = checksum === "" ? undefined : this.#entries.get(entryKey(module, checksum));
    this.#options.metrics.cacheLookups[entry === undefined ? "false" : "true"].add();
    if (entry === undefined) return undefined;
    entry.lastUsed = this.#now();
    this.#remember(module, checksum, entry);
    return entry.path;
  }

  async #add(module: RemoteModule, checksum: string, bytes: Buffer): Promise<string> {
    const folder = join(this.#options.folder, sha256(moduleName(module.url)));
    const path = join(folder, `${checksum}.wasm`);
    makeFolder(folder, 0o755);
    // Envoy may read it at any moment: it appears as a whole.
    await writeFile(`${path}.part`, bytes, { mode: 0o644 });
    await rename(`${path}.part`, path);
    const entry = { path, lastUsed: this.#now(), urls: new Set<string>() };
    this.#entries.set(entryKey(module, checksum), entry);
    this.#remember(module, checksum, entry);
    return path;
  }

  /** What the URL gave last, unless the policy wants to ask again because the object changed. */
  #knownChecksum(module: RemoteModule): string {
    const known = this.#known.get(module.url);
    if (known === undefined) return "";
    const unchanged = known.versions.get(module.resourceName) === module.resourceVersion;
    known.versions.set(module.resourceName, module.resourceVersion);
    return unchanged || !asksAgain(module) ? known.checksum : "";
  }

  #remember({ url, resourceName, resourceVersion }: RemoteModule, checksum: string, entry: Entry): void {
    if (digestOf(url) !== undefined) return; // it can never be another
    const known = this.#known.get(url) ?? { checksum, versions: new Map<string, string>() };
    known.checksum = checksum;
    known.versions.set(resourceName, resourceVersion);
    this.#known.set(url, known);
    entry.urls.add(url);
  }

  /** Files of earlier runs are in nobody's memory; only their age says something. */
  async #purgeForgotten(oldest: number): Promise<void> {
    const { folder } = this.#options;
    const kept = new Set([...this.#entries.values()].map(({ path }) => path));
    const files = await readdir(folder, { recursive: true }).catch(() => []);
    for (const file of files.filter((name) => /^[0-9a-f]{64}\/[0-9a-f]{64}\.wasm(\.part)?$/.test(name))) {
      const path = join(folder, file);
      const { mtimeMs = oldest } = (await stat(path).catch(() => undefined)) ?? {};
      if (!kept.has(path) && mtimeMs < oldest) await rm(path, { force: true });
    }
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

/** Without a policy, images with a tag that moves by its nature are asked for again, all else is not. */
function asksAgain({ pullPolicy, url }: RemoteModule): boolean {
  if (pullPolicy !== "UNSPECIFIED_POLICY") return pullPolicy === "Always";
  return url.startsWith("oci:") && url.endsWith(":latest");
}

/** The digest in the URL of an image, in hex. */
function digestOf(url: string): string | undefined {
  return /^oci:.*@sha256:([0-9a-f]{64})$/.exec(url)?.[1];
}

/** Images have one name whatever their tag or digest. */
function moduleName(url: string): string {
  return url.startsWith("oci:") ? url.replace(/@[^/]*$/, "").replace(/:[^:/]*$/, "") : url;
}

function entryKey({ url }: RemoteModule, checksum: string): string {
  return `${moduleName(url)} ${checksum}`;
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
