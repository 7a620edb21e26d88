/** Gets modules from servers and registries. Loaded only when a configuration asks for a module. */
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { RemoteModule } from "./extension.ts";
import { httpGet } from "./http-get.ts";
import { moduleOfImage } from "./image.ts";
import { parseImageReference } from "./image-reference.ts";
import { Registry } from "./registry.ts";
import { credentialsFor, machineCredentials } from "./registry-credentials.ts";
import { guardFor, type ServerRules } from "./server-rules.ts";
import { sha256 } from "./sha256.ts";
import { unboxed } from "./unpack.ts";

export interface FetchOptions extends ServerRules {
  /** WASM_HTTP_REQUEST_TIMEOUT: for each attempt over HTTP. */
  readonly httpTimeoutMs: number;
  /** WASM_HTTP_REQUEST_MAX_RETRIES: attempts over HTTP. */
  readonly httpAttempts: number;
  /** DOCKER_CONFIG: folder with the machine's credentials. */
  readonly dockerConfigFolder: string;
  readonly log: Logger;
}

/** A module that can be had; its bytes come only when they are needed. */
export interface Offer {
  /** SHA-256 in hex: of the bytes or, for an image, of its manifest. */
  readonly checksum: string;
  readonly read: () => Promise<Buffer>;
}

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 60_000;
const NOT_RETRIED: ReadonlySet<number> = new Set([501, 505, 511]);

/** Rejects when the server does not give it; the signal ends all of it. */
export async function offerOf(module: RemoteModule, options: FetchOptions, signal: AbortSignal): Promise<Offer> {
  const url = new URL(module.url);
  if (url.protocol === "oci:") return imageOffer(module, options, signal);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new MeshError("WASM_DOWNLOAD_FAILED", `unsupported scheme ${url.protocol} of ${module.url}`);
  const bytes = await download(url, options, signal);
  return { checksum: await sha256(bytes), read: async () => bytes };
}

async function imageOffer(module: RemoteModule, options: FetchOptions, signal: AbortSignal): Promise<Offer> {
  const image = parseImageReference(module.url.slice("oci://".length));
  const dockerConfig = module.pullSecret ?? (await machineCredentials(options.dockerConfigFolder));
  const registry = new Registry({
    image,
    credentials: credentialsFor(image.registry, dockerConfig),
    rules: options,
    signal,
  });
  options.log.info(`fetching image ${image.repository} from registry ${image.registry} with tag ${image.identifier}`);
  const manifest = await registry.manifest();
  return { checksum: manifest.digest.slice("sha256:".length), read: () => moduleOfImage(manifest, registry) };
}

async function download(url: URL, options: FetchOptions, signal: AbortSignal): Promise<Buffer> {
  const backoff = new Backoff({ initialMs: FIRST_PAUSE_MS, maxMs: MAX_PAUSE_MS });
  const guard = guardFor(url, options);
  let reason = "";
  for (let attempt = 1; attempt <= options.httpAttempts && !signal.aborted; attempt++) {
    if (attempt > 1) await sleep(backoff.next(), signal);
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(options.httpTimeoutMs)]);
      const answer = await httpGet(url, { rules: options, guard, signal: limit });
      if (answer.status === 200) return await unboxed(answer.body);
      reason = `status code ${answer.status}`;
      if (answer.status < 500 || NOT_RETRIED.has(answer.status)) break;
    } catch (thrown) {
      if (thrown instanceof MeshError && thrown.code === "WASM_SERVER_REFUSED") throw thrown;
      reason = errorText(thrown);
    }
    options.log.warn(`Wasm module download failed: ${reason}`, { attempt });
  }
  throw new MeshError("WASM_DOWNLOAD_FAILED", `wasm module download failed, last error: ${reason}`);
}
