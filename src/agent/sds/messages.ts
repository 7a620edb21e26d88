/** The messages of SDS, field by field: `Secret`, and requests and responses of both kinds of stream. */

import { readMessage, readString } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { parseDeltaRequest } from "#protocol/messages/delta-request.ts";
import { formatDeltaResponse, resourceFrame } from "#protocol/messages/delta-response.ts";
import { SECRET_TYPE } from "#protocol/messages/type-urls.ts";
import type { Secret } from "./secret.ts";

/** A secret under its name, encoded as `envoy.extensions.transport_sockets.tls.v3.Secret`. */
export interface EncodedSecret {
  readonly name: string;
  readonly bytes: Uint8Array;
}

export interface EncodeOptions {
  /** `privateKeyProvider` of ProxyConfig: hardware that Envoy hands private keys to. */
  readonly keyProvider?: KeyProvider | undefined;
  /** A list of revoked certificates, which Envoy reads by itself. */
  readonly revocationFile?: string | undefined;
}

export interface KeyProvider {
  readonly name: "cryptomb" | "qat";
  readonly pollDelayNanos: number;
  /** Go on without the hardware where it is missing. */
  readonly fallback: boolean;
}

const KEY_PROVIDER_TYPES: Readonly<Record<KeyProvider["name"], string>> = {
  cryptomb: "envoy.extensions.private_key_providers.cryptomb.v3alpha.CryptoMbPrivateKeyMethodConfig",
  qat: "envoy.extensions.private_key_providers.qat.v3alpha.QatPrivateKeyMethodConfig",
};

/** The secret as Envoy reads it. */
export function encodeSecret(secret: Secret, { keyProvider, revocationFile }: EncodeOptions = {}): EncodedSecret {
  const { name } = secret;
  const writer = new MessageWriter().string(1, name);
  if ("roots" in secret) {
    const context = new MessageWriter().bytes(1, inline(secret.roots));
    if (revocationFile !== undefined) context.bytes(7, new MessageWriter().string(1, revocationFile).finish());
    return { name, bytes: writer.bytes(4, context.finish()).finish() };
  }
  const certificate = new MessageWriter().bytes(1, inline(secret.chain));
  if (keyProvider === undefined) certificate.bytes(2, inline(secret.privateKey));
  else certificate.bytes(6, encodeKeyProvider(keyProvider, secret.privateKey));
  return { name, bytes: writer.bytes(2, certificate.finish()).finish() };
}

/** `PrivateKeyProvider`: the key goes into the provider's own message. */
function encodeKeyProvider({ name, pollDelayNanos, fallback }: KeyProvider, privateKey: string): Uint8Array {
  const delay = new MessageWriter().varint(2, pollDelayNanos).finish();
  const method = new MessageWriter().bytes(1, inline(privateKey)).bytes(2, delay).finish();
  const any = new MessageWriter()
    .string(1, `type.googleapis.com/${KEY_PROVIDER_TYPES[name]}`)
    .bytes(2, method)
    .finish();
  return new MessageWriter()
    .string(1, name)
    .bytes(3, any)
    .varint(4, fallback ? 1 : 0)
    .finish();
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
    // Without a nonce it answers no response: the client has none, or has forgotten it.
    const asksAgain = nonce === "" && refused === undefined;
    return {
      subscribe: [...(asksAgain ? names : names.difference(subscribed))],
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
    return { subscribe: [...new Set(subscribe)], unsubscribe, nonce, refused: error?.message };
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
