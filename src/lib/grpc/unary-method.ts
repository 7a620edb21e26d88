/** Methods with one message in and one out. */
import { joined, type Pieces } from "./messages.ts";
import { asGrpcError, type Method, type ServerCall } from "./server-call.ts";
import { GrpcError, STATUS } from "./status.ts";

/** Reads the message; rejects if there is none, if it is longer than `maxBytes`, or if the call ends before it is complete. */
export type ReadRequest = (limits?: { readonly maxBytes: number }) => Promise<Buffer>;

/** A method that answers with what its function returns or throws. */
export function unaryMethod(answer: (request: Buffer, call: ServerCall) => Promise<Uint8Array>): Method {
  return readingMethod(async (call, read) => answer(await read(), call));
}

/** The same, with a function that decides when to read the request. Until then HTTP/2 keeps the client from sending it. */
export function readingMethod(answer: (call: ServerCall, read: ReadRequest) => Promise<Uint8Array>): Method {
  return (call) =>
    void answer(call, (limits) => onlyMessage(call, limits?.maxBytes)).then(
      (message) => {
        call.send(message);
        call.end();
      },
      (thrown: unknown) => call.end(asGrpcError(thrown)),
    );
}

function onlyMessage(call: ServerCall, maxBytes: number | undefined): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let isRead = false;
    const cancelled = () => reject(new GrpcError(STATUS.CANCELLED, "The call ended before its request was complete"));
    if (call.gone.aborted) return cancelled();
    call.gone.addEventListener("abort", cancelled);
    call.serve(
      {
        message: (message: Pieces) => {
          if (isRead) return call.end({ code: STATUS.INTERNAL, details: "Received more than one message" });
          isRead = true;
          resolve(joined(message));
        },
        end: () => {
          if (!isRead) reject(new GrpcError(STATUS.INTERNAL, "Received no message"));
        },
      },
      maxBytes,
    );
  });
}
