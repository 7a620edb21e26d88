import { randomBytes } from "node:crypto";
import { formatDeltaResponse } from "#protocol/delta-response.ts";
import type { BuiltResource } from "./built-resource.ts";

/** A response as it goes over the wire, to one proxy or to many. */
export interface EncodedResponse {
  readonly nonce: string;
  readonly bytes: Buffer;
}

export interface ResponseContent {
  readonly typeUrl: string;
  readonly resources: readonly BuiltResource[];
  readonly removed: readonly string[];
}

export interface ResponseOptions {
  /** How many bytes of responses may be kept for other proxies. */
  readonly maxBytes: number;
  /** Who answers, as proxies show it. */
  readonly controlPlane: string;
}

/**
 * Encodes responses, and keeps the latest ones: proxies that are told the same at about the same time get the same buffer.
 * The nonce is part of the buffer and so the same too; a proxy gets no second response of a type before it answered the
 * first, so a nonce is unique where it matters.
 */
export class Responses {
  readonly #options: ResponseOptions;
  readonly #prefix = randomBytes(6).toString("base64url");
  /** In the order of last use. */
  readonly #kept = new Map<string, EncodedResponse>();
  #keptBytes = 0;
  #count = 0;

  constructor(options: ResponseOptions) {
    this.#options = options;
  }

  encode(content: ResponseContent, systemVersion: string): EncodedResponse {
    const key = `${content.typeUrl} ${content.resources.map(({ id }) => id).join()} ${content.removed.join("\n")}`;
    const response = this.#kept.get(key) ?? this.#encode(content, systemVersion);
    if (!this.#kept.delete(key)) this.#keptBytes += response.bytes.length;
    this.#kept.set(key, response);
    this.#forgetOldest();
    return response;
  }

  /** Nobody is expected to want the same any more. */
  clear(): void {
    this.#kept.clear();
    this.#keptBytes = 0;
  }

  #encode({ typeUrl, resources, removed }: ResponseContent, systemVersion: string): EncodedResponse {
    const nonce = `${this.#prefix}${(this.#count++).toString(36)}`;
    const frames = resources.map(({ frame }) => frame);
    const { controlPlane } = this.#options;
    return {
      nonce,
      bytes: formatDeltaResponse({ typeUrl, nonce, systemVersion, resources: frames, removed, controlPlane }),
    };
  }

  #forgetOldest(): void {
    for (const [key, { bytes }] of this.#kept) {
      if (this.#keptBytes <= this.#options.maxBytes) return;
      this.#kept.delete(key);
      this.#keptBytes -= bytes.length;
    }
  }
}
