import assert from "node:assert/strict";
import { connect } from "node:http2";
import { test } from "node:test";
import { serveMethods } from "../../../test/support/grpc-server.ts";
import { Admission } from "../admission/admission.ts";
import { FramedMessage, joined } from "./messages.ts";
import { GrpcError, STATUS } from "./status.ts";
import { readingMethod } from "./unary-method.ts";

/** Sends most of a message; the status that the call ends with, and what the server had of the message by then. */
async function halfSent(authenticates: boolean) {
  const admission = new Admission();
  let kept = -1;
  const method = readingMethod(async (_, read) => {
    if (!authenticates) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      kept = admission.strangers.bytes;
      throw new GrpcError(STATUS.UNAUTHENTICATED, "no");
    }
    return read({ maxBytes: 1_000 });
  });
  await using server = await serveMethods({ "/s/Method": method }, { admission });
  const session = connect(`http://${server.address}`);
  const stream = session.request({ ":method": "POST", ":path": "/s/Method", "content-type": "application/grpc" });
  stream.on("error", () => undefined);
  stream.write(joined(new FramedMessage(Buffer.alloc(1_000_000)).framed).subarray(0, 900_000));
  const [headers] = await new Promise<[Record<string, unknown>]>((resolve) => {
    stream.once("response", (head) => resolve([head]));
  });
  session.destroy();
  return { status: headers["grpc-status"], kept };
}

test("readingMethod() keeps nothing of a request before it reads", async () => {
  const { status, kept } = await halfSent(false);
  assert.equal(status, String(STATUS.UNAUTHENTICATED));
  assert.ok(kept < 100_000, `${kept} bytes were kept`);
});

test("readingMethod() refuses a request that is longer than the method reads", async () => {
  const { status } = await halfSent(true);
  assert.equal(status, String(STATUS.RESOURCE_EXHAUSTED));
});
