import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { test } from "node:test";
import { joined, MessageSender, MessageSplitter, type Pieces } from "./messages.ts";
import { GrpcError, STATUS } from "./status.ts";

function framed(message: Buffer, flag = 0): Buffer {
  const head = Buffer.from([flag, 0, 0, 0, 0]);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function split(chunks: readonly Buffer[], maxBytes = -1): Pieces[] {
  const messages: Pieces[] = [];
  const splitter = new MessageSplitter(maxBytes, (message) => void messages.push(message));
  for (const chunk of chunks) splitter.push(chunk);
  return messages;
}

test("MessageSplitter finds messages wherever the bytes are cut", () => {
  const sent = [Buffer.from("one"), Buffer.alloc(0), Buffer.alloc(5_000, 7), Buffer.from("last")];
  const bytes = Buffer.concat(sent.map((message) => framed(message)));
  for (const size of [1, 2, 4, 5, 6, 1_000, bytes.length]) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    );
    assert.deepEqual(split(chunks).map(joined), sent, `chunks of ${size}`);
  }
});

test("MessageSplitter gives pieces as they came, without a copy", () => {
  const first = framed(Buffer.alloc(6_000, 1)).subarray(0, 3_005);
  const second = Buffer.alloc(3_000, 1);
  const [message = []] = split([first, second]);
  assert.deepEqual(
    message.map(({ buffer, byteOffset, length }) => [
      buffer === first.buffer || buffer === second.buffer,
      byteOffset,
      length,
    ]),
    [
      [true, first.byteOffset + 5, 3_000],
      [true, second.byteOffset, 3_000],
    ],
  );
});

test("MessageSplitter keeps no list of tiny pieces", () => {
  const message = Buffer.alloc(4_096, 3);
  const chunks = [...framed(message)].map((byte) => Buffer.of(byte));
  const [pieces = []] = split(chunks);
  assert.ok(pieces.length <= 5, `${pieces.length} pieces`);
  assert.deepEqual(joined(pieces), message);
});

test("MessageSplitter refuses what is too long, before it has come, and what is compressed", () => {
  const isStatus = (code: number) => (error: unknown) => error instanceof GrpcError && error.code === code;
  const head = framed(Buffer.alloc(11)).subarray(0, 5);
  assert.throws(() => split([head], 10), isStatus(STATUS.RESOURCE_EXHAUSTED));
  assert.equal(split([framed(Buffer.alloc(10))], 10).length, 1);
  assert.throws(() => split([framed(Buffer.from("x"), 1)]), isStatus(STATUS.UNIMPLEMENTED));
});

/** A stream that takes what it is given only when it is told to. */
class Reader extends Writable {
  readonly taken: Buffer[] = [];
  #given: { readonly chunks: readonly Buffer[]; readonly done: () => void } | undefined;

  override _writev(chunks: { readonly chunk: Buffer }[], done: () => void): void {
    this.#given = { chunks: chunks.map(({ chunk }) => chunk), done };
  }

  get given(): number {
    return this.#given?.chunks.reduce((sum, { length }) => sum + length, 0) ?? 0;
  }

  /** Takes all that it has been given, which may be followed by more. */
  async take(): Promise<void> {
    const { chunks = [], done } = this.#given ?? {};
    this.#given = undefined;
    this.taken.push(...chunks);
    done?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("MessageSender gives a long message in parts, and what comes after it behind it", async () => {
  const reader = new Reader();
  const events: string[] = [];
  reader.on("finish", () => events.push("end"));
  const sender = new MessageSender(reader, { onDrain: () => events.push("room"), isEncrypted: true });
  const long = Buffer.alloc(1_000_000, 1);
  const pieces = Array.from({ length: 100 }, (_, i) => Buffer.alloc(20_000, i));
  const small = Buffer.from("last");
  assert.equal(
    sender.send(long, () => events.push("long left")),
    false,
  );
  sender.send(pieces, () => events.push("pieces left"));
  sender.send(small, () => events.push("small left"));
  let most = 0;
  while (reader.given > 0) {
    most = Math.max(most, reader.given);
    await reader.take();
  }
  assert.ok(most <= 300_000, `${most} bytes at once`);
  assert.deepEqual(events, ["long left", "pieces left", "small left", "room"]);
  assert.deepEqual(split(reader.taken).map(joined), [long, Buffer.concat(pieces), small]);
  assert.equal(sender.send(small), true);
  await reader.take();
  sender.send(long);
  sender.end();
  while (reader.given > 0) await reader.take();
  assert.deepEqual(split(reader.taken).slice(3).map(joined), [small, long]);
  assert.equal(events.at(-1), "end");
});

test("MessageSender gives a message of a megabyte in one part where nothing is copied", () => {
  const reader = new Reader();
  new MessageSender(reader, { isEncrypted: false }).send(Buffer.alloc(1_000_000));
  assert.ok(reader.given > 1_000_000, `${reader.given} bytes at once`);
});

test("MessageSender tells nobody that something has left when the stream broke", async () => {
  const reader = new Reader();
  reader.on("error", () => undefined);
  const sender = new MessageSender(reader, { isEncrypted: true });
  sender.send(Buffer.alloc(1_000_000), () => assert.fail("it did not leave"));
  reader.destroy(new Error("broken"));
  await reader.take();
  await reader.take();
  assert.equal(reader.given, 0);
});
