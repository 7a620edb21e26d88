/** Answers of the application to the agent's scrapes: HTTP/1.1 cut in any way, and lines of metrics. */
import assert from "node:assert/strict";
import { AnswerReader } from "#agent/status/answer-reader.ts";
import { istioNames, LineCutter } from "#agent/status/exposition-lines.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { type FuzzTarget, readOrReject } from "./target.ts";

export const target: FuzzTarget = {
  maxBytes: 4096,
  dictionary: [
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "\r\n\r\n",
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "ffffffffffff\r\n",
    'envoy_istio_requests_total{a="b"} 1\n',
    "# TYPE envoy_istio_a counter\n",
    "__proto__: a\r\n",
  ],
  run(input) {
    const whole = readOrReject(() => bodyOf([input]), MeshError);
    const bytes = readOrReject(() => bodyOf(Array.from(input, (byte) => Buffer.of(byte))), MeshError);
    assert.deepEqual(bytes, whole, "it does not matter how an answer is cut");
    const cutter = new LineCutter();
    const half = input.length >> 1;
    const lines = [...cutter.cut(input.subarray(0, half)), ...cutter.cut(input.subarray(half)), ...cutter.end()];
    const text = Buffer.concat(lines);
    assert.ok(text.length === input.length || text.length === input.length + 1, "no byte of the metrics is lost");
    assert.ok(istioNames(input).length <= input.length);
  },
};

function bodyOf(chunks: readonly Buffer[]): { readonly body: string; readonly isComplete: boolean } {
  const reader = new AnswerReader();
  const parts = chunks.flatMap((chunk) => reader.read(chunk));
  return { body: Buffer.concat(parts).toString("latin1"), isComplete: reader.isComplete };
}
