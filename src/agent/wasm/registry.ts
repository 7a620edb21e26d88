/**
 * Reads from an image registry (OCI distribution API): asks what it wants of callers, gets a token if it wants one, then
 * manifests and blobs, each checked against its digest.
 */
import { sleep } from "#lib/async/sleep.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { FetchGuard } from "#lib/net/fetch-guard.ts";
import { type GetAnswer, type GetOptions, httpGet } from "./http-get.ts";
import type { ImageReference } from "./image-reference.ts";
import type { Credentials } from "./registry-credentials.ts";
import { assertRealmsAllowed, guardFor, isInsecure, type ServerRules } from "./server-rules.ts";
import { sha256 } from "./sha256.ts";

export interface RegistryOptions {
  readonly image: ImageReference;
  readonly credentials: Credentials | undefined;
  readonly rules: ServerRules;
  readonly signal: AbortSignal;
}

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly platform?: { readonly architecture?: string; readonly os?: string } | undefined;
}

export interface Manifest {
  /** Of the image itself, also where the reference leads to a list of images. */
  readonly digest: string;
  /** Empty where the manifest does not say. */
  readonly mediaType: string;
  readonly layers: readonly Descriptor[];
}

export const DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json";
const OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const OCI_INDEX = "application/vnd.oci.image.index.v1+json";
const ACCEPTED = [DOCKER_MANIFEST, OCI_MANIFEST, DOCKER_LIST, OCI_INDEX].join(",");
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;
const RETRIED: ReadonlySet<number> = new Set([408, 500, 502, 503, 504]);
const RETRY_PAUSES_MS = [100, 300];

export class Registry {
  readonly #options: RegistryOptions;
  readonly #guard: FetchGuard;
  #base: URL;
  #authorization: string | undefined;

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#base = new URL(`https://${options.image.registry}/v2/`);
    this.#guard = guardFor(this.#base, options.rules);
  }

  /** The manifest of the image; of a list the one for Linux on AMD64, as for every image without a machine. */
  async manifest(): Promise<Manifest> {
    await this.#connect();
    const { identifier, byDigest } = this.#options.image;
    const first = await this.#manifest(identifier, byDigest ? identifier : undefined);
    if (first.images.length === 0) return first;
    const image = first.images.find(({ platform }) => platform?.os === "linux" && platform.architecture === "amd64");
    if (image === undefined) throw failed("the list of images has none for linux/amd64");
    return this.#manifest(image.digest, image.digest);
  }

  /** The content of a layer. */
  async blob(digest: string): Promise<Buffer> {
    const answer = await this.#get(`blobs/${digest}`, {});
    if (`sha256:${await sha256(answer.body)}` !== digest) throw failed(`the blob ${digest} has another digest`);
    return answer.body;
  }

  async #manifest(
    identifier: string,
    digest: string | undefined,
  ): Promise<Manifest & { images: readonly Descriptor[] }> {
    const answer = await this.#get(`manifests/${identifier}`, { accept: ACCEPTED }, MAX_MANIFEST_BYTES);
    const actual = `sha256:${await sha256(answer.body)}`;
    if (digest !== undefined && actual !== digest) throw failed(`the manifest ${digest} has the digest ${actual}`);
    const { mediaType, layers, manifests } = parseManifest(answer.body);
    const type = mediaType || (answer.headers["content-type"] ?? "");
    const isList = type === DOCKER_LIST || type === OCI_INDEX;
    return { digest: actual, mediaType, layers, images: isList ? manifests : [] };
  }

  /** Finds out what the registry wants, over TLS; over plain text only if it speaks no TLS and is configured as insecure. */
  async #connect(): Promise<void> {
    const { registry } = this.#options.image;
    let answer: GetAnswer;
    try {
      answer = await this.#send(this.#base, {});
    } catch (thrown) {
      if (!isPlainText(thrown)) throw thrown;
      if (!isInsecure(this.#base, this.#options.rules))
        throw failed(`${registry} answers in plain text, which is allowed only if WASM_INSECURE_REGISTRIES lists it`);
      this.#base = new URL(`http://${registry}/v2/`);
      answer = await this.#send(this.#base, {});
    }
    const { status, headers } = answer;
    if (status !== 200 && status !== 401) throw failed(`${registry} answered with status ${status}`);
    // One that lets everybody in may keep some of its images for those it knows.
    this.#authorization = await this.#authorize(status === 200 ? "" : (headers["www-authenticate"] ?? ""));
  }

  /** The header by which a challenge is met. */
  async #authorize(challenge: string): Promise<string | undefined> {
    const { credentials, rules } = this.#options;
    assertRealmsAllowed(challenge, this.#guard);
    if (credentials !== undefined && credentials.registryToken !== "") return `Bearer ${credentials.registryToken}`;
    const basic = credentials === undefined ? undefined : basicAuthorization(credentials);
    if (!/^bearer\b/i.test(challenge)) return basic;
    const realm = parameter(challenge, "realm");
    if (!URL.canParse(realm)) throw failed(`"${realm}" is no place to get tokens from`);
    const server = new URL(realm);
    if (server.protocol === "http:" && !isInsecure(server, rules))
      throw failed(
        `tokens of ${server.host} come over plain http, which is allowed only if WASM_INSECURE_REGISTRIES lists it`,
      );
    const scope = `repository:${this.#options.image.repository}:pull`;
    const service = parameter(challenge, "service");
    const answer =
      credentials !== undefined && credentials.identityToken !== ""
        ? await this.#exchange(server, { service, scope, token: credentials.identityToken })
        : await this.#send(withQuery(realm, { service, scope }), basic === undefined ? {} : { authorization: basic });
    if (answer.status !== 200) throw failed(`no token from ${server.host}: status ${answer.status}`);
    return `Bearer ${tokenOf(answer.body)}`;
  }

  #exchange(
    url: URL,
    { service, scope, token }: { service: string; scope: string; token: string },
  ): Promise<GetAnswer> {
    const form = { grant_type: "refresh_token", service, scope, client_id: "mizzen", refresh_token: token };
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    return this.#send(url, headers, { method: "POST", body: new URLSearchParams(form).toString() });
  }

  async #get(path: string, headers: Readonly<Record<string, string>>, maxBytes?: number): Promise<GetAnswer> {
    const url = new URL(`${this.#options.image.repository}/${path}`, this.#base);
    const authorization = this.#authorization === undefined ? {} : { authorization: this.#authorization };
    const answer = await this.#send(url, { ...headers, ...authorization }, maxBytes === undefined ? {} : { maxBytes });
    if (answer.status === 200) return answer;
    throw failed(`${url.host}${url.pathname}: status ${answer.status}${registryError(answer.body)}`);
  }

  async #send(
    url: URL,
    headers: Readonly<Record<string, string>>,
    more: Pick<GetOptions, "method" | "body" | "maxBytes"> = {},
  ): Promise<GetAnswer> {
    const { rules, signal } = this.#options;
    const get = () => httpGet(url, { headers, rules, guard: this.#guard, signal, ...more });
    for (const pauseMs of RETRY_PAUSES_MS) {
      const answer = await get();
      if (!RETRIED.has(answer.status)) return answer;
      await sleep(pauseMs, signal);
    }
    return get();
  }
}

function parseManifest(body: Buffer) {
  let parsed: { mediaType?: unknown; layers?: unknown; manifests?: unknown };
  try {
    parsed = Object(JSON.parse(body.toString()));
  } catch (cause) {
    throw new MeshError("WASM_IMAGE_INVALID", "the manifest is no JSON", { cause });
  }
  const descriptors = (list: unknown): Descriptor[] => (Array.isArray(list) ? list.filter(isDescriptor) : []);
  return {
    mediaType: typeof parsed.mediaType === "string" ? parsed.mediaType : "",
    layers: descriptors(parsed.layers),
    manifests: descriptors(parsed.manifests),
  };
}

function isDescriptor(value: unknown): value is Descriptor {
  const { mediaType, digest } = Object(value);
  return typeof mediaType === "string" && typeof digest === "string" && /^sha256:[0-9a-f]{64}$/.test(digest);
}

/** What TLS says of a server that answers in plain text. */
function isPlainText(thrown: unknown): boolean {
  return /WRONG_VERSION_NUMBER|wrong version number|packet length too long/i.test(errorText(thrown));
}

function basicAuthorization({ username, password }: Credentials): string | undefined {
  return username === "" ? undefined : `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

function parameter(challenge: string, name: string): string {
  return new RegExp(`${name}="([^"]*)"`, "i").exec(challenge)?.[1] ?? "";
}

function withQuery(url: string, query: Readonly<Record<string, string>>): URL {
  const result = new URL(url);
  for (const [name, value] of Object.entries(query)) if (value !== "") result.searchParams.set(name, value);
  return result;
}

function tokenOf(body: Buffer): string {
  try {
    const { token, access_token: accessToken } = Object(JSON.parse(body.toString()));
    const found = token || accessToken;
    if (typeof found === "string" && found !== "") return found;
  } catch {
    // said below, without the answer, which may hold a token
  }
  throw failed("the answer has no token");
}

/** The registry's own words, if it has any. */
function registryError(body: Buffer): string {
  const text = body.toString("utf8", 0, 300);
  const message = /"message"\s*:\s*"([^"]*)"/.exec(text)?.[1];
  return message === undefined ? "" : ` (${message})`;
}

function failed(reason: string): MeshError {
  return new MeshError("WASM_DOWNLOAD_FAILED", reason);
}
