/** The messages of SDS, field by field: `Secret`, and requests and responses of both kinds of stream. */

import { readMessage, readString } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { parseDeltaRequest } from "#protocol/delta-request.ts";
import { formatDeltaResponse, resourceFrame } from "#protocol/delta-response.ts";
import { SECRET_TYPE } from "#protocol/type-urls.ts";

/** A secret under its name, encoded as `envoy.extensions.transport_sockets.tls.v3.Secret`. */
export interface EncodedSecret {
  readonly name: string;
  readonly bytes: Uint8Array;
}

export function certificateSecret(
  name: string,
  { chain, privateKey }: { readonly chain: string; readonly privateKey: string },
): EncodedSecret {
  const certificate = new MessageWriter().bytes(1, inline(chain)).bytes(2, inline(privateKey)).finish();
  return { name, bytes: new MessageWriter().string(1, name).bytes(2, certificate).finish() };
}

export function rootsSecret(name: string, roots: string): EncodedSecret {
  const context = new MessageWriter().bytes(1, inline(roots)).finish();
  return { name, bytes: new MessageWriter().string(1, name).bytes(4, context).finish() };
}

/** `DataSource.inline_bytes` */
function inline(text: string): Uint8Array {
  return new MessageWriter().bytes(2, Buffer.from(text)).finish();
}

/** What a request asks, whichever kind of stream it came over. */
export interface SecretRequest {
  /** Names that are wanted from now on. */
  readonly subscribe: readonly string[];
  /** Names that are not wanted any more. */
  readonly unsubscribe: readonly string[];
  /** Of the response that this one answers; empty when it answers none. */
  readonly nonce: string;
  /** Why that response was refused; undefined when it was not. */
  readonly refused: string | undefined;
}

export interface SecretResponse {
  readonly secrets: readonly EncodedSecret[];
  readonly version: string;
  readonly nonce: string;
}

/** The two kinds of stream. */
export interface SecretStreamKind {
  parse(bytes: Buffer, subscribed: ReadonlySet<string>): SecretRequest;
  format(response: SecretResponse): Buffer;
}

/** State of the world: each request repeats all names. */
export const SOTW: SecretStreamKind = {
  parse: (bytes, subscribed) => {
    const names = new Set<string>();
    let nonce = "";
    let refused: string | undefined;
    readMessage(bytes, {
      bytes: {
        3: (name) => void names.add(readString(name)),
        5: (value) => {
          nonce = readString(value);
        },
        6: (status) => {
          refused = statusMessage(status);
        },
      },
    });
    return {
      subscribe: [...names.difference(subscribed)],
      unsubscribe: [...subscribed.difference(names)],
      nonce,
      refused,
    };
  },
  format: ({ secrets, version, nonce }) => {
    const writer = new MessageWriter().string(1, version);
    for (const { bytes } of secrets)
      writer.bytes(2, new MessageWriter().string(1, SECRET_TYPE).bytes(2, bytes).finish());
    return Buffer.from(writer.string(4, SECRET_TYPE).string(5, nonce).finish());
  },
};

/** Delta: each request names what changes. */
export const DELTA: SecretStreamKind = {
  parse: (bytes) => {
    const { subscribe, unsubscribe, nonce, error } = parseDeltaRequest(bytes);
    return { subscribe, unsubscribe, nonce, refused: error?.message };
  },
  format: ({ secrets, version, nonce }) =>
    formatDeltaResponse({
      typeUrl: SECRET_TYPE,
      nonce,
      systemVersion: version,
      resources: secrets.map(({ name, bytes }) => resourceFrame(SECRET_TYPE, { name, version, value: bytes })),
      removed: [],
      controlPlane: "",
    }),
};

/** `google.rpc.Status.message` */
function statusMessage(status: Uint8Array): string {
  let message = "";
  readMessage(status, {
    bytes: {
      2: (text) => {
        message = readString(text);
      },
    },
  });
  return message;
}
