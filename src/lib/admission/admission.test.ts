import assert from "node:assert/strict";
import { test } from "node:test";
import { Admission, CONNECTION_BYTES, type PeerRefusal, STREAM_BYTES } from "./admission.ts";

const { accepted, http2 } = CONNECTION_BYTES;
const nothing = () => undefined;

function admissionOf(strangerBytes: number) {
  const refusals: PeerRefusal[] = [];
  const limits = { strangerBytes, knownBytes: STREAM_BYTES * 3, introductionMs: 60_000 };
  return { refusals, admission: new Admission({ limits, onRefused: (refusal) => refusals.push(refusal) }) };
}

test("a newcomer is admitted in place of the oldest connection of the peer with the most", () => {
  const { admission, refusals } = admissionOf(3 * accepted);
  const cut: string[] = [];
  admission.connection("10.0.0.1", () => cut.push("quiet"));
  for (const name of ["flood 1", "flood 2", "flood 3"]) admission.connection("10.0.0.2", () => cut.push(name));
  assert.deepEqual(cut, ["flood 1"]);
  assert.deepEqual(refusals, [{ what: "connection", reason: "no_room", peer: "10.0.0.2" }]);
});

test("a connection occupies nothing while a stream of it is introduced, and again afterwards", () => {
  const { admission } = admissionOf(1_000_000);
  const connection = admission.connection("10.0.0.1", nothing);
  connection.resize(http2);
  const stream = connection.stream(nothing);
  stream.waits(STREAM_BYTES);
  assert.equal(admission.strangers.bytes, http2 + STREAM_BYTES);
  stream.introduced();
  assert.equal(admission.strangers.bytes, 0);
  stream.close();
  assert.equal(admission.strangers.bytes, http2);
  connection.close();
  assert.equal(admission.strangers.bytes, 0);
});

test("an authenticated peer is never cut for strangers, however many come", () => {
  const { admission } = admissionOf(2 * http2);
  const known = admission.connection("10.0.0.1", () => assert.fail("cut"));
  const stream = known.stream(() => assert.fail("cut"));
  stream.waits(STREAM_BYTES);
  stream.authenticated("spiffe://mesh/ns/a/sa/b");
  for (let i = 0; i < 100; i++) admission.connection("10.0.0.1", nothing).resize(http2);
  assert.deepEqual([admission.known.bytes, admission.strangers.bytes], [STREAM_BYTES, 2 * http2]);
  stream.close();
  assert.equal(admission.known.bytes, 0);
});

test("incomplete messages count until they are complete", () => {
  const { admission } = admissionOf(1_000_000);
  let cuts = 0;
  const connection = admission.connection(undefined, nothing);
  const first = connection.stream(() => cuts++);
  first.introduced();
  first.buffers(600_000);
  first.buffers(0);
  first.buffers(700_000);
  const second = connection.stream(nothing);
  second.buffers(600_000);
  assert.deepEqual([cuts, admission.strangers.bytes], [1, accepted + 600_000]);
});

test("a connection whose peer does not introduce itself in time is cut", async () => {
  const refusals: PeerRefusal[] = [];
  const admission = new Admission({ limits: { introductionMs: 5 }, onRefused: (refusal) => refusals.push(refusal) });
  const keepAlive = setInterval(nothing, 1_000);
  await new Promise<void>((resolve) => admission.connection("10.0.0.1", resolve));
  clearInterval(keepAlive);
  assert.deepEqual(refusals, [{ what: "connection", reason: "timeout", peer: "10.0.0.1" }]);
  assert.equal(admission.strangers.bytes, 0);
});
