/** `google.rpc.Status`, as a request carries it when a response was rejected. */
import { readMessage } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { FIELD_LIMIT, readErrorText } from "./request-limits.ts";

export interface RequestError {
  readonly code: number;
  readonly message: string;
}

/** Throws on bytes that are not a message. Of a long text it keeps the beginning. */
export function parseRequestError(bytes: Uint8Array): RequestError {
  let code = 0;
  let message = "";
  readMessage(bytes, {
    limit: FIELD_LIMIT,
    varint: {
      1: (value) => {
        code = value;
      },
    },
    bytes: {
      2: (value) => {
        message = readErrorText(value);
      },
    },
  });
  return { code, message };
}

/** The bytes of the message. */
export function formatRequestError({ code, message }: RequestError): Uint8Array {
  return new MessageWriter().varint(1, code).string(2, message).finish();
}
