import { randomBytes } from "node:crypto";
import { MessageWriter } from "#lib/wire/write.ts";
import { formatDeltaResponse } from "#protocol/delta-response.ts";
import type { StreamKind } from "#protocol/session.ts";
import { formatStateResponse, stateFrame, stateFrameIn } from "#protocol/state-response.ts";
import { ENDPOINT_TYPE, ROUTE_TYPE } from "#protocol/type-urls.ts";
import type { BuiltResource } from "./built-resource.ts";

/** A response as it goes over the wire, to one proxy or to many. */
export interface EncodedResponse {
  readonly nonce: string;
  readonly bytes: Buffer;
}

export interface ResponseContent {
  readonly kind: StreamKind;
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
    const key = `${content.kind} ${content.typeUrl} ${content.resources.map(({ id }) => id).join()} ${content.removed.join("\n")}`;
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

  #encode(content: ResponseContent, version: string): EncodedResponse {
    const nonce = `${this.#prefix}${(this.#count++).toString(36)}`;
    const { typeUrl, resources, removed } = content;
    const { controlPlane } = this.#options;
    const common = { typeUrl, nonce, controlPlane };
    const bytes =
      content.kind === "delta"
        ? formatDeltaResponse({ ...common, systemVersion: version, resources: resources.map((r) => r.frame), removed })
        : formatStateResponse({ ...common, version, resources: stateFrames(content) });
    return { nonce, bytes };
  }

  #forgetOldest(): void {
    for (const [key, { bytes }] of this.#kept) {
      if (this.#keptBytes <= this.#options.maxBytes) return;
      this.#kept.delete(key);
      this.#keptBytes -= bytes.length;
    }
  }
}

/**
 * State of the world has no word for "does not exist", and who asked for endpoints or routes waits until it hears of them: an
 * empty message, which is its name in field 1, says it.
 */
function stateFrames({ typeUrl, resources, removed }: ResponseContent): readonly Uint8Array[] {
  const frames = resources.map(({ frame, value }) => stateFrameIn(frame, typeUrl, value));
  if (typeUrl !== ENDPOINT_TYPE && typeUrl !== ROUTE_TYPE) return frames;
  const empty = removed.map((name) => stateFrame(typeUrl, new MessageWriter().string(1, name).finish()));
  return [...frames, ...empty];
}
