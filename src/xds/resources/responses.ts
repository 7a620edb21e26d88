import { randomBytes } from "node:crypto";
import { hasSameItems } from "#lib/collections/same-items.ts";
import { FramedMessage } from "#lib/grpc/messages.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { deltaResponsePieces } from "#protocol/messages/delta-response.ts";
import { stateFrame, stateFrameIn, stateResponsePieces } from "#protocol/messages/state-response.ts";
import { ENDPOINT_TYPE, EXTENSION_TYPE, ROUTE_TYPE } from "#protocol/messages/type-urls.ts";
import type { StreamKind } from "#protocol/session.ts";
import type { Draft } from "#protocol/subscription.ts";
import type { BuiltResource } from "./built-resource.ts";
import { FrameGroups } from "./frame-groups.ts";

/** A response as it goes over the wire, to one proxy or to many. */
export interface EncodedResponse {
  readonly nonce: string;
  /** Large resources, and groups of others, are pieces by themselves, the same in all responses that have them. */
  readonly message: FramedMessage;
}

/** What is to be told, as the session of a stream says it. */
export interface NextResponse {
  readonly typeUrl: string;
  readonly draft: Told;
}

type Told = Pick<Draft<BuiltResource>, "resources" | "repeated" | "removed">;

interface ResponseContent {
  readonly kind: StreamKind;
  readonly typeUrl: string;
  readonly resources: readonly BuiltResource[];
  readonly removed: readonly string[];
  /** What tells most contents apart. */
  readonly glance: string;
}

interface KeptResponse {
  readonly content: ResponseContent;
  readonly response: EncodedResponse;
}

/**
 * Envoy takes the removal of an extension for an order, though listeners that drain still use it: their requests would fail. It
 * forgets an extension by itself with the last listener that names it.
 */
const NEVER_REMOVED: ReadonlySet<string> = new Set([EXTENSION_TYPE]);

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
  /** By what can be told of their content at a glance, in the order of last use. */
  readonly #kept = new Map<string, KeptResponse>();
  /** Streams in the same state have the same draft. */
  readonly #contents = new WeakMap<Told, ResponseContent>();
  readonly #groups: Readonly<Record<StreamKind, FrameGroups>>;
  #newest: KeptResponse | undefined;
  #keptBytes = 0;
  #count = 0;

  constructor(options: ResponseOptions) {
    this.#options = options;
    const { maxBytes } = options;
    this.#groups = { delta: new FrameGroups(maxBytes), state: new FrameGroups(maxBytes) };
  }

  encode(kind: StreamKind, next: NextResponse, systemVersion: string): EncodedResponse {
    const content = this.#contents.get(next.draft) ?? contentOf(kind, next);
    if (this.#newest?.content === content) return this.#newest.response;
    this.#contents.set(next.draft, content);
    const { glance } = content;
    const kept = this.#kept.get(glance);
    if (kept !== undefined) this.#forget(glance, kept.response);
    const response =
      kept !== undefined && isSame(kept.content, content) ? kept.response : this.#encode(content, systemVersion);
    this.#newest = { content, response };
    this.#kept.set(glance, this.#newest);
    this.#keptBytes += response.message.length;
    this.#forgetOldest();
    return response;
  }

  /** Nobody is expected to want the same any more. */
  clear(): void {
    this.#kept.clear();
    for (const groups of Object.values(this.#groups)) groups.clear();
    this.#newest = undefined;
    this.#keptBytes = 0;
  }

  #encode(content: ResponseContent, version: string): EncodedResponse {
    const nonce = `${this.#prefix}${(this.#count++).toString(36)}`;
    const { typeUrl, resources, removed } = content;
    const { controlPlane } = this.#options;
    const common = { typeUrl, nonce, controlPlane };
    const pieces =
      content.kind === "delta"
        ? deltaResponsePieces({
            ...common,
            systemVersion: version,
            resources: this.#deltaFrames(resources),
            removed: NEVER_REMOVED.has(typeUrl) ? [] : removed,
          })
        : stateResponsePieces({ ...common, version, resources: this.#stateFrames(content) });
    return { nonce, message: new FramedMessage(pieces) };
  }

  #deltaFrames(resources: readonly BuiltResource[]): readonly Uint8Array[] {
    return this.#groups.delta.of(resources, ({ frame }) => frame);
  }

  /**
   * State of the world has no word for "does not exist", and who asked for endpoints or routes waits until it hears of them: an
   * empty message, which is its name in field 1, says it.
   */
  #stateFrames({ typeUrl, resources, removed }: ResponseContent): readonly Uint8Array[] {
    const frames = this.#groups.state.of(resources, ({ frame, value }) => stateFrameIn(frame, typeUrl, value));
    if (typeUrl !== ENDPOINT_TYPE && typeUrl !== ROUTE_TYPE) return frames;
    const empty = removed.map((name) => stateFrame(typeUrl, new MessageWriter().string(1, name).finish()));
    return [...frames, ...empty];
  }

  #forgetOldest(): void {
    for (const [key, { response }] of this.#kept) {
      if (this.#keptBytes <= this.#options.maxBytes) return;
      this.#forget(key, response);
    }
  }

  #forget(key: string, { message }: EncodedResponse): void {
    this.#kept.delete(key);
    this.#keptBytes -= message.length;
  }
}

/** A glance at all resources would cost more than the comparison with one content. */
function contentOf(kind: StreamKind, { typeUrl, draft }: NextResponse): ResponseContent {
  const { repeated, removed } = draft;
  const resources = repeated.length === 0 ? draft.resources : [...draft.resources, ...repeated];
  const middle = resources[resources.length >> 1]?.id;
  const ends = `${resources[0]?.id} ${middle} ${resources.at(-1)?.id}`;
  const glance = `${kind} ${typeUrl} ${resources.length} ${ends} ${removed.length} ${removed[0]}`;
  return { kind, typeUrl, resources, removed, glance };
}

function isSame(a: ResponseContent, b: ResponseContent): boolean {
  return a === b || (hasSameItems(a.resources, b.resources) && hasSameItems(a.removed, b.removed));
}
